----------------------------- MODULE AwaCronSync -----------------------------
(***************************************************************************)
(* How deployments store what they register.                               *)
(*                                                                         *)
(* AwaCron takes a sync for one step of one schedule.  It is three: a      *)
(* process reads which of its schedules are absent or stored otherwise     *)
(* and works out what an edit settles; it begins a transaction and takes   *)
(* the sync lock; it writes all of them in one statement, and leaves out   *)
(* what has changed since the read or is held by somebody.  Several        *)
(* deployments do so at once, with sets of schedules that overlap or not,  *)
(* and each may be replaced by a version that registers something else.    *)
(* Meanwhile a leader reads and enqueues, operators pause, resume and      *)
(* remove, processes crash, and the clock may slip.                        *)
(*                                                                         *)
(* Leadership is left out: a leader is here whoever reads and writes,      *)
(* stale or not.  Rows, fires, guards and the leader's steps are AwaCron's.*)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
    Leaders,          \* instances that evaluate
    Processes,        \* processes that register schedules
    Versions,         \* per process, what its deployments may register
    Schedules, Definitions, FiresOf, Policy, PassLimit, MaxTime,
    ClockMaySlip, None,  \* as in AwaCron
    RowsMayBeHeld     \* may a sync find rows that somebody else holds?

Instants == 0..MaxTime
Registrations == [Schedules -> Definitions \cup {None}]

ASSUME VersionsAreRegistrations ==
    /\ Versions \in [Processes -> SUBSET Registrations]
    /\ \A p \in Processes : Versions[p] # {}

VARIABLES
    now, rows, jobs, floor, snapshot,  \* as in AwaCron
    registers,  \* per process, the definitions that its code registers
    plans,      \* per process, what its sync has read and not yet written
    syncLock    \* the process whose sync's transaction is under way, or None

syncVars == <<registers, plans, syncLock>>
vars == <<now, rows, jobs, floor, snapshot, registers, plans, syncLock>>

Cron == INSTANCE AwaCron WITH
    Instances <- Leaders, up <- [i \in Leaders |-> TRUE], believes <- [i \in Leaders |-> TRUE],
    lock <- CHOOSE i \in Leaders : TRUE,
    triggered <- [s \in Schedules |-> 0], MaxTriggers <- 0, FaultyEvaluator <- FALSE

(* What a plan says of one schedule.  `isNew`: there was no row.  `asRead`:*)
(* nobody has written the row since; on Postgres its version is compared.  *)
Write == [def : Definitions, isNew : BOOLEAN, asRead : BOOLEAN,
          fires : Cron!AnyFires \cup {<<>>}]

(* `at` is the clock of the read.  `begun`: the clock and the floors that  *)
(* the writing statement sees, once it is under way.                       *)
Plan == [at : Instants, writes : [Schedules -> Write \cup {None}],
         begun : [now : Instants, floor : [Schedules -> Instants]] \cup {None}]

TypeOK ==
    /\ now \in Instants
    /\ rows \in [Schedules -> Cron!Row \cup {None}]
    /\ jobs \in [Schedules -> [Instants -> Nat]]
    /\ floor \in [Schedules -> Instants]
    /\ registers \in [Processes -> Registrations]
    /\ syncLock \in Processes \cup {None}
    /\ DOMAIN plans = Processes
    /\ \A p \in Processes : plans[p] # None =>
          /\ plans[p].at \in Instants
          /\ plans[p].begun # None <=> syncLock = p
          /\ \A s \in Schedules : plans[p].writes[s] \in Write \cup {None}
    /\ syncLock # None => plans[syncLock] # None

Init ==
    /\ now = 0
    /\ rows = [s \in Schedules |-> None]
    /\ jobs = [s \in Schedules |-> [f \in Instants |-> 0]]
    /\ floor = [s \in Schedules |-> 0]
    /\ snapshot = [i \in Leaders |-> None]
    /\ registers \in {r \in [Processes -> Registrations] : \A p \in Processes : r[p] \in Versions[p]}
    /\ plans = [p \in Processes |-> None]
    /\ syncLock = None

----------------------------------------------------------------------------
(* Small vocabulary.                                                       *)

Larger(a, b) == IF a > b THEN a ELSE b

Differs(p, s) ==
    registers[p][s] # None /\ (rows[s] = None \/ rows[s].def # registers[p][s])

(* The rows of S are written: no plan that has read them is current now.   *)
(* A new row has no version that could be compared.                        *)
Outdated(plan, S) ==
    IF plan = None THEN None
    ELSE [plan EXCEPT !.writes =
            [s \in Schedules |->
                IF s \in S /\ @[s] # None /\ ~@[s].isNew THEN [@[s] EXCEPT !.asRead = FALSE] ELSE @[s]]]

Outdate(S) == plans' = [p \in Processes |-> Outdated(plans[p], S)]

Unlocked(p) == IF syncLock = p THEN None ELSE syncLock

----------------------------------------------------------------------------
(* What a sync reads and writes, in operators that can be broken one by    *)
(* one in MCAwaCronSync.                                                   *)

PlannedWrite(p, s) ==
    IF ~Differs(p, s) THEN None
    ELSE [def |-> registers[p][s],
          isNew |-> rows[s] = None,
          asRead |-> rows[s] # None,
          fires |-> IF rows[s] = None THEN <<>> ELSE Cron!SettledFires(s, rows[s])]

(* The guards of sync.sql.  While nobody has written the row since the     *)
(* read, the ones on the fires hold by themselves.                         *)
AsRead(write) == write.asRead
MaySettle(row, write, at) ==
    write.fires # <<>> =>
        /\ ~row.paused
        /\ Cron!After(Cron!First(write.fires), row.last)
        /\ Cron!First(write.fires) > row.anchor
        /\ Cron!Last(write.fires) <= at

Inserts(p) ==
    {s \in Schedules : plans[p].writes[s] # None /\ plans[p].writes[s].isNew /\ rows[s] = None}

Edits(p) ==
    {s \in Schedules :
        /\ plans[p].writes[s] # None
        /\ ~plans[p].writes[s].isNew
        /\ rows[s] # None
        /\ AsRead(plans[p].writes[s])
        /\ MaySettle(rows[s], plans[p].writes[s], plans[p].at)}

AnchorOnInsert(begun, s) == Larger(begun.now, begun.floor[s])
InsertedRow(p, s) ==
    [def |-> plans[p].writes[s].def, last |-> None,
     anchor |-> AnchorOnInsert(plans[p].begun, s), paused |-> FALSE]

AnchorOnEdit(row, at) == Larger(at, row.anchor)
EditedRow(p, s) ==
    [Cron!Marked(rows[s], plans[p].writes[s].fires) EXCEPT
        !.def = plans[p].writes[s].def,
        !.anchor = AnchorOnEdit(rows[s], plans[p].at)]

Written(p, s) == IF s \in Inserts(p) THEN InsertedRow(p, s) ELSE EditedRow(p, s)

(* Rows that are not written stay; that includes everybody else's.         *)
Unwritten(p, s) == rows[s]

----------------------------------------------------------------------------
(* awa_cron.actions.sync: the three steps of a process.                    *)

(* The query differing_definitions, and the fires that an edit settles. If *)
(* nothing differs, the sync is over: that is no step.                     *)
SyncRead(p) ==
    /\ plans[p] = None
    /\ LET writes == [s \in Schedules |-> PlannedWrite(p, s)]
       IN  /\ \E s \in Schedules : writes[s] # None
           /\ plans' = [plans EXCEPT ![p] = [at |-> now, writes |-> writes, begun |-> None]]
    /\ UNCHANGED <<now, rows, jobs, floor, snapshot, registers, syncLock>>

(* The query hold_sync_lock, and the start of the statement after it: what *)
(* that sees of clock and removals is settled here.                        *)
SyncBegin(p) ==
    /\ plans[p] # None
    /\ plans[p].begun = None
    /\ syncLock = None
    /\ syncLock' = p
    /\ plans' = [plans EXCEPT ![p].begun = [now |-> now, floor |-> floor]]
    /\ UNCHANGED <<now, rows, jobs, floor, snapshot, registers>>

(* The statement sync, and its commit.  What is left out is read again.    *)
SyncWrite(p) ==
    /\ plans[p] # None
    /\ plans[p].begun # None
    /\ \E held \in IF RowsMayBeHeld THEN SUBSET Schedules ELSE {{}} :
          LET written == (Inserts(p) \cup Edits(p)) \ held
          IN  /\ rows' = [s \in Schedules |->
                             IF s \in written THEN Written(p, s) ELSE Unwritten(p, s)]
              /\ jobs' = [s \in Schedules |->
                             IF s \in written
                             THEN Cron!WithJobs(jobs[s], plans[p].writes[s].fires) ELSE jobs[s]]
              /\ plans' = [q \in Processes |->
                             IF q = p THEN None ELSE Outdated(plans[q], written)]
    /\ syncLock' = Unlocked(p)
    /\ UNCHANGED <<now, floor, snapshot, registers>>

Sync(p) == SyncRead(p) \/ SyncBegin(p) \/ SyncWrite(p)

----------------------------------------------------------------------------
(* The leaders' steps, AwaCron's.                                          *)

ReadCronState(i) == Cron!ReadCronState(i) /\ UNCHANGED syncVars

AtomicEnqueue(i) ==
    /\ Cron!AtomicEnqueue(i)
    /\ Outdate(Cron!Winners(i))
    /\ UNCHANGED <<registers, syncLock>>

CASFail(i) == Cron!CASFail(i) /\ UNCHANGED syncVars

Evaluate(i) == ReadCronState(i) \/ AtomicEnqueue(i) \/ CASFail(i)

System == (\E p \in Processes : Sync(p)) \/ (\E i \in Leaders : Evaluate(i))

----------------------------------------------------------------------------
(* The environment.                                                        *)

AdvanceClock == Cron!AdvanceClock /\ UNCHANGED syncVars

Pause(s) == Cron!Pause(s) /\ Outdate({s}) /\ UNCHANGED <<registers, syncLock>>

Resume(s) == Cron!Resume(s) /\ Outdate({s}) /\ UNCHANGED <<registers, syncLock>>

(* A removal takes the sync lock too.                                      *)
Remove(s) ==
    /\ syncLock = None
    /\ Cron!Remove(s)
    /\ Outdate({s})
    /\ UNCHANGED <<registers, syncLock>>

(* A process dies in the middle of its sync; its session, and with it the  *)
(* lock, goes too.  It is started again at once, or this step comes later. *)
Crash(p) ==
    /\ plans[p] # None
    /\ plans' = [plans EXCEPT ![p] = None]
    /\ syncLock' = Unlocked(p)
    /\ UNCHANGED <<now, rows, jobs, floor, snapshot, registers>>

(* A rolling deploy replaces a process by one that registers other things. *)
Deploy(p) ==
    /\ \E version \in Versions[p] :
          /\ version # registers[p]
          /\ registers' = [registers EXCEPT ![p] = version]
    /\ plans' = [plans EXCEPT ![p] = None]
    /\ syncLock' = Unlocked(p)
    /\ UNCHANGED <<now, rows, jobs, floor, snapshot>>

Environment ==
    \/ AdvanceClock
    \/ \E s \in Schedules : Pause(s) \/ Resume(s) \/ Remove(s)
    \/ \E p \in Processes : Crash(p) \/ Deploy(p)

----------------------------------------------------------------------------
Next == System \/ Environment

Spec == Init /\ [][Next]_vars

(* The stable cluster: whatever is stored, nobody deploys, removes, pauses *)
(* or crashes any more.  A process goes on with its sync, and whoever waits*)
(* for the lock gets it in his turn.                                       *)
StableInit ==
    /\ now \in Instants
    /\ rows \in [Schedules ->
            [def : Definitions, last : {None}, anchor : {0}, paused : BOOLEAN] \cup {None}]
    /\ jobs = [s \in Schedules |-> [f \in Instants |-> 0]]
    /\ floor = [s \in Schedules |-> 0]
    /\ snapshot = [i \in Leaders |-> None]
    /\ registers \in {r \in [Processes -> Registrations] : \A p \in Processes : r[p] \in Versions[p]}
    /\ plans = [p \in Processes |-> None]
    /\ syncLock = None

StableNext ==
    \/ System
    \/ AdvanceClock
    \/ \E s \in Schedules : Resume(s)

StableSpec ==
    /\ StableInit
    /\ [][StableNext]_vars
    /\ \A p \in Processes : WF_vars(SyncRead(p)) /\ SF_vars(SyncBegin(p)) /\ WF_vars(SyncWrite(p))
    /\ \A i \in Leaders : WF_vars(Evaluate(i))

----------------------------------------------------------------------------
(* Properties.                                                             *)

Kept(s) == rows[s] # None /\ rows'[s] # None
Edited(s) == Kept(s) /\ rows'[s].def # rows[s].def
Registered(s) == rows[s] = None /\ rows'[s] # None
Removed(s) == rows[s] # None /\ rows'[s] = None
NewFires(s) == {f \in Instants : jobs'[s][f] # jobs[s][f]}

(* A sync ends, by writing or otherwise.                                   *)
Ends(p) == plans[p] # None /\ plans'[p] = None

(* What the row owes at instant t by its policy.                           *)
OwedBy(s, t) ==
    LET missed == {f \in FiresOf[rows[s].def] :
                      rows[s].anchor < f /\ f <= t /\ (rows[s].last = None \/ rows[s].last < f)}
    IN  IF Policy[s] = "coalesce"
        THEN {f \in missed : \A g \in missed : g <= f}
        ELSE {f \in missed : Cardinality({g \in missed : g < f}) < PassLimit}

(* P10, P12.  As in AwaCron: jobs are made past `last` and past the anchor.*)
NoDuplicateFire == \A s \in Schedules : \A f \in Instants : jobs[s][f] <= 1

(* P09.  Jobs appear exactly when `last` moves to the newest of them.      *)
MarkIffJob ==
    [][\A s \in Schedules :
          /\ NewFires(s) # {} <=> Kept(s) /\ rows'[s].last # rows[s].last
          /\ NewFires(s) # {} => rows'[s].last = Cron!Max(NewFires(s))]_vars

(* P11.                                                                    *)
FiresAdvance ==
    [][\A s \in Schedules : \A f \in NewFires(s) : \A g \in Instants :
          jobs[s][g] > 0 => g < f]_vars

(* P13.  A pause between a sync's read and its write changes the row, and  *)
(* what the read would have settled is not written.                        *)
PausedBlocksEnqueue ==
    [][\A s \in Schedules : rows[s] # None /\ rows[s].paused => NewFires(s) = {}]_vars

(* P02.  No row goes in a step that ends a sync.                           *)
SyncNeverDeletes ==
    [][\A p \in Processes : Ends(p) => \A s \in Schedules : ~Removed(s)]_vars

(* P02.  A sync writes what its process registers, as that registers it.   *)
SyncWritesOnlyOwn ==
    [][\A p \in Processes : Ends(p) => \A s \in Schedules :
          rows'[s] # rows[s] /\ rows'[s] # None => rows'[s].def = registers[p][s]]_vars

(* P04.  A row that is as the process registers it is left as it is.       *)
UnchangedSyncWritesNothing ==
    [][\A p \in Processes : Ends(p) => \A s \in Schedules :
          rows[s] # None /\ rows[s].def = registers[p][s] => rows'[s] = rows[s]]_vars

(* P03.  A sync keeps the pause, and `last` unless it settles.             *)
SyncPreservesPauseAndLast ==
    [][\A p \in Processes : Ends(p) => \A s \in Schedules : Kept(s) =>
          /\ rows'[s].paused = rows[s].paused
          /\ NewFires(s) = {} => rows'[s].last = rows[s].last]_vars

(* P20b.  The old definition rules up to the new anchor and the new one    *)
(* after it: what the old one owed at that instant becomes jobs with the   *)
(* edit, unless paused, and nothing falls between the two.                 *)
EditSettles ==
    [][\A s \in Schedules : Edited(s) =>
          NewFires(s) = (IF rows[s].paused THEN {} ELSE OwedBy(s, rows'[s].anchor))]_vars

(* P12.  Also if the row was removed while a sync that inserts it was      *)
(* under way: the two exclude each other.                                  *)
InsertKeepsFloor ==
    [][\A s \in Schedules : Registered(s) => rows'[s].anchor >= floor[s]]_vars

(* P20.  Jobs are for instants after the anchor.  A new row is anchored at *)
(* the clock of its statement or later; an edit never moves an anchor back,*)
(* and nothing else moves it.                                              *)
NoRetroactiveFire ==
    [][\A s \in Schedules :
          /\ \A f \in NewFires(s) : f > rows[s].anchor
          /\ Registered(s) =>
                \E p \in Processes : Ends(p) /\ rows'[s].anchor >= plans[p].begun.now
          /\ Edited(s) => rows'[s].anchor >= rows[s].anchor
          /\ Kept(s) /\ ~Edited(s) => rows'[s].anchor = rows[s].anchor]_vars

(* P19.  Due by the clock of the statement that writes, or, for what an    *)
(* edit settles, by the clock of its read.                                 *)
NoEarlyFire ==
    [][\A s \in Schedules : \A f \in NewFires(s) :
          f <= now \/ \E p \in Processes : Ends(p) /\ f <= plans[p].at]_vars

(* P17, P20.  As in AwaCron.                                               *)
FiresFitDefinition ==
    [][\A s \in Schedules : NewFires(s) \subseteq
          (IF rows[s] = None THEN {} ELSE FiresOf[rows[s].def])]_vars

PassBounded == [][\A s \in Schedules : Cardinality(NewFires(s)) <= PassLimit]_vars

(* From outside this too is ExactlyOnce, while the clock does not slip:    *)
(* what an edit settles was due at its read, and may not be any more.      *)
Outside == INSTANCE ExactlyOnce WITH byHand <- [s \in Schedules |-> 0]

RefinesExactlyOnce == Outside!Spec

----------------------------------------------------------------------------
(* Liveness, of StableSpec.                                                *)

(* P04.  What somebody registers is stored.                                *)
RegisteredEventuallyStored ==
    \A p \in Processes, s \in Schedules : registers[p][s] # None ~> rows[s] # None

(* P04.  Where deployments agree, rows come to be as they are registered,  *)
(* and stay so.  A race is lost only because somebody else wrote, and then *)
(* it is read again.  Where two register one name differently this does    *)
(* not hold: they edit it back and forth as long as both run.              *)
DefinitionsConverge ==
    <>[](\A p \in Processes, s \in Schedules : ~Differs(p, s))

=============================================================================
