------------------------------ MODULE AwaCron ------------------------------
(***************************************************************************)
(* Cron for Postgres, as a protocol.                                       *)
(*                                                                         *)
(* Schedules are rows in a table.  Several instances compete for one       *)
(* advisory lock; its holder, the leader, reads the rows together with the *)
(* database's clock, works out which instants ("fires") are due, and turns *)
(* them into jobs with one conditional statement.  Everything around that  *)
(* statement may go wrong: a leader may lose its session without knowing,  *)
(* stall between the read and the write, or crash; operators may pause,    *)
(* trigger, edit and remove schedules at any moment; the clock may step    *)
(* back; the evaluator of cron expressions may be wrong.                   *)
(*                                                                         *)
(* The module states what one step of each party is, and what must hold    *)
(* all the same: no fire is lost, none becomes two jobs, none is early,    *)
(* none belongs to the past, and a pause is a pause.                       *)
(*                                                                         *)
(* Bounds, concrete schedules, broken variants and witnesses are in        *)
(* MCAwaCron.  The action names in snake_case are the function names of    *)
(* awa_cron.actions and of the Python model in tests/model.                *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
    Instances,        \* processes that may lead
    Schedules,        \* names under which schedules are registered
    Definitions,      \* what a name can stand for: an expression in a zone
    FiresOf,          \* per definition, the instants at which it fires
    Policy,           \* per schedule, what happens to missed fires
    PassLimit,        \* how many fires of a catch-up schedule one pass brings
    MaxTime,          \* the last instant of the model
    MaxTriggers,      \* how often each schedule may be triggered by hand
    ClockMaySlip,     \* may the database's clock also jump, forth and back?
    FaultyEvaluator,  \* may the evaluator return arbitrary instants?
    None              \* absence: of a row, a last fire, a holder, a snapshot

Instants == 0..MaxTime

ASSUME MaxTimeIsNatural == MaxTime \in Nat
ASSUME MaxTriggersIsNatural == MaxTriggers \in Nat
ASSUME PassLimitIsPositive == PassLimit \in Nat \ {0}
ASSUME DefinitionsFireAtInstants == FiresOf \in [Definitions -> SUBSET Instants]
ASSUME PoliciesAreKnown == Policy \in [Schedules -> {"coalesce", "catch_up"}]
ASSUME SwitchesAreBoolean == {ClockMaySlip, FaultyEvaluator} \subseteq BOOLEAN
ASSUME NoneIsNoInstance == None \notin Instances

VARIABLES
    now,        \* the database's clock, the only one that counts
    rows,       \* per schedule, its row or None
    jobs,       \* per schedule and instant, how many automatic jobs were made
    triggered,  \* per schedule, how many jobs were made by hand
    floor,      \* per schedule, the highest last fire of its removed rows
    lock,       \* the instance whose session holds the advisory lock, or None
    up,         \* per instance, whether its process runs
    believes,   \* per instance, whether it takes itself for the leader
    snapshot    \* per instance, what its pass has read and not yet written

vars == <<now, rows, jobs, triggered, floor, lock, up, believes, snapshot>>

(* A schedule's row.  `last` is the last fire that became a job; only      *)
(* instants after `anchor` count as fires.                                 *)
Row == [def : Definitions, last : Instants \cup {None},
        anchor : Instants, paused : BOOLEAN]

----------------------------------------------------------------------------
(* Small vocabulary.                                                       *)

Max(S) == CHOOSE m \in S : \A other \in S : other <= m
Smaller(a, b) == IF a < b THEN a ELSE b
Larger(a, b) == IF a > b THEN a ELSE b
Range(seq) == {seq[k] : k \in DOMAIN seq}
First(seq) == seq[1]
Last(seq) == seq[Len(seq)]

Ascending(S) ==
    CHOOSE seq \in [1..Cardinality(S) -> S] :
        \A k \in 1..(Cardinality(S) - 1) : seq[k] < seq[k + 1]

After(fire, last) == last = None \/ fire > last

(* What a pass froze for one schedule: the row's definition, anchor and    *)
(* last fire as read, and the instants to become jobs, oldest first.       *)
AnyFires == {Ascending(S) : S \in {T \in SUBSET Instants :
                                      T # {} /\ Cardinality(T) <= PassLimit}}
Frozen == [def : Definitions, anchor : Instants,
           expected : Instants \cup {None}, fires : AnyFires]

TypeOK ==
    /\ now \in Instants
    /\ rows \in [Schedules -> Row \cup {None}]
    /\ jobs \in [Schedules -> [Instants -> Nat]]
    /\ triggered \in [Schedules -> 0..MaxTriggers]
    /\ floor \in [Schedules -> Instants]
    /\ lock \in Instances \cup {None}
    /\ up \in [Instances -> BOOLEAN]
    /\ believes \in [Instances -> BOOLEAN]
    /\ DOMAIN snapshot = Instances
    /\ \A i \in Instances :
          snapshot[i] # None =>
              /\ DOMAIN snapshot[i] = Schedules
              /\ \A s \in Schedules : snapshot[i][s] \in Frozen \cup {None}

Init ==
    /\ now = 0
    /\ rows = [s \in Schedules |-> None]
    /\ jobs = [s \in Schedules |-> [f \in Instants |-> 0]]
    /\ triggered = [s \in Schedules |-> 0]
    /\ floor = [s \in Schedules |-> 0]
    /\ lock = None
    /\ up = [i \in Instances |-> TRUE]
    /\ believes = [i \in Instances |-> FALSE]
    /\ snapshot = [i \in Instances |-> None]

----------------------------------------------------------------------------
(* The evaluator: which fires a row has, and which of them a pass takes.   *)

Due(row, t) ==
    {f \in FiresOf[row.def] : f > row.anchor /\ After(f, row.last) /\ f <= t}

Coalesced(due) == <<Max(due)>>
CaughtUp(due) ==
    SubSeq(Ascending(due), 1, Smaller(PassLimit, Cardinality(due)))

Chosen(s, row, t) ==
    LET due == Due(row, t)
    IN  IF due = {} THEN <<>>
        ELSE IF Policy[s] = "coalesce" THEN Coalesced(due) ELSE CaughtUp(due)

----------------------------------------------------------------------------
(* The guards of the conditional write, each a line of its WHERE clause.   *)
(* `row` is the row as it is at the write, `frozen` what the pass read.    *)

LastAsRead(row, frozen) == row.last = frozen.expected
DefinedAsRead(row, frozen) == row.def = frozen.def /\ row.anchor = frozen.anchor
Unpaused(row, frozen) == ~row.paused
Advances(row, frozen) == After(First(frozen.fires), row.last)
AfterAnchor(row, frozen) == First(frozen.fires) > row.anchor
AlreadyDue(row, frozen) == Last(frozen.fires) <= now

Passes(row, frozen) ==
    /\ LastAsRead(row, frozen)
    /\ DefinedAsRead(row, frozen)
    /\ Unpaused(row, frozen)
    /\ Advances(row, frozen)
    /\ AfterAnchor(row, frozen)
    /\ AlreadyDue(row, frozen)

Winners(i) ==
    {s \in Schedules :
        rows[s] # None /\ snapshot[i][s] # None /\ Passes(rows[s], snapshot[i][s])}

----------------------------------------------------------------------------
(* What the actions write, in operators small enough to be broken one by   *)
(* one in MCAwaCron.                                                       *)

WithJobs(count, fires) ==
    [f \in Instants |-> IF f \in Range(fires) THEN count[f] + 1 ELSE count[f]]

Marked(row, fires) ==
    IF fires = <<>> THEN row ELSE [row EXCEPT !.last = Last(fires)]

Upserted(s, row) == [rows EXCEPT ![s] = row]

AnchorOnInsert(s) == Larger(now, floor[s])
InsertedRow(s, d) ==
    [def |-> d, last |-> None, anchor |-> AnchorOnInsert(s), paused |-> FALSE]

SettledFires(s, row) == IF row.paused THEN <<>> ELSE Chosen(s, row, now)
AnchorOnEdit(row) == Larger(now, row.anchor)
EditedRow(s, row, d) ==
    [Marked(row, SettledFires(s, row)) EXCEPT !.def = d, !.anchor = AnchorOnEdit(row)]

PausedRow(row) == [row EXCEPT !.paused = TRUE]
ResumedRow(row) == [row EXCEPT !.paused = FALSE]

FloorOnRemove(s) ==
    IF rows[s].last = None THEN floor[s] ELSE Larger(floor[s], rows[s].last)

StepDown(i) ==
    /\ believes' = [believes EXCEPT ![i] = FALSE]
    /\ snapshot' = [snapshot EXCEPT ![i] = None]

----------------------------------------------------------------------------
(* The system's own steps: what every instance's loops do.                 *)

(* awa_cron.actions.acquire_leader: an instance that does not lead tries   *)
(* the lock and gets it.                                                   *)
AcquireLeader(i) ==
    /\ up[i]
    /\ ~believes[i]
    /\ lock = None
    /\ lock' = i
    /\ believes' = [believes EXCEPT ![i] = TRUE]
    /\ UNCHANGED <<now, rows, jobs, triggered, floor, up, snapshot>>

(* awa_cron.actions.ping_leader: a leader asks whether its session still   *)
(* holds the lock, finds that it does not, and goes back to the election.  *)
PingLeader(i) ==
    /\ up[i]
    /\ believes[i]
    /\ lock # i
    /\ StepDown(i)
    /\ UNCHANGED <<now, rows, jobs, triggered, floor, lock, up>>

(* awa_cron.actions.read_cron_state: whoever takes itself for the leader   *)
(* reads clock and rows in one statement and freezes the fires of the      *)
(* pass.  Paused rows are skipped.  A pass without fires ends here.        *)
FrozenOf(row, fires) ==
    [def |-> row.def, anchor |-> row.anchor, expected |-> row.last, fires |-> fires]

Evaluations(s) ==
    IF rows[s] = None \/ rows[s].paused THEN {None}
    ELSE IF FaultyEvaluator
        THEN {None} \cup {FrozenOf(rows[s], fires) : fires \in AnyFires}
    ELSE IF Chosen(s, rows[s], now) = <<>> THEN {None}
        ELSE {FrozenOf(rows[s], Chosen(s, rows[s], now))}

ReadCronState(i) ==
    /\ up[i]
    /\ believes[i]
    /\ snapshot[i] = None
    /\ \E read \in [Schedules -> UNION {Evaluations(s) : s \in Schedules}] :
          /\ \A s \in Schedules : read[s] \in Evaluations(s)
          /\ \E s \in Schedules : read[s] # None
          /\ snapshot' = [snapshot EXCEPT ![i] = read]
    /\ UNCHANGED <<now, rows, jobs, triggered, floor, lock, up, believes>>

(* awa_cron.actions.atomic_enqueue, some rows written: mark and insert in  *)
(* one statement, row by row, for every row whose guards hold now.         *)
AtomicEnqueue(i) ==
    /\ up[i]
    /\ snapshot[i] # None
    /\ LET won == Winners(i)
       IN  /\ won # {}
           /\ rows' = [s \in Schedules |->
                         IF s \in won THEN Marked(rows[s], snapshot[i][s].fires) ELSE rows[s]]
           /\ jobs' = [s \in Schedules |->
                         IF s \in won THEN WithJobs(jobs[s], snapshot[i][s].fires) ELSE jobs[s]]
    /\ snapshot' = [snapshot EXCEPT ![i] = None]
    /\ UNCHANGED <<now, triggered, floor, lock, up, believes>>

(* awa_cron.actions.atomic_enqueue, no row written: the race is lost and   *)
(* the next pass reads anew.                                               *)
CASFail(i) ==
    /\ up[i]
    /\ snapshot[i] # None
    /\ Winners(i) = {}
    /\ snapshot' = [snapshot EXCEPT ![i] = None]
    /\ UNCHANGED <<now, rows, jobs, triggered, floor, lock, up, believes>>

System ==
    \E i \in Instances :
        \/ AcquireLeader(i)
        \/ PingLeader(i)
        \/ ReadCronState(i)
        \/ AtomicEnqueue(i)
        \/ CASFail(i)

----------------------------------------------------------------------------
(* The environment: time, faults, operators and deployments.               *)

(* Nobody's function: the database's clock goes on, or slips to any other  *)
(* instant.  A large step is several small ones.                           *)
AdvanceClock ==
    /\ \/ now < MaxTime /\ now' = now + 1
       \/ ClockMaySlip /\ now' \in Instants \ {now}
    /\ UNCHANGED <<rows, jobs, triggered, floor, lock, up, believes, snapshot>>

(* awa_cron.actions.lose_leader: a leader shuts down and gives up lock and *)
(* belief together.                                                        *)
LoseLeader(i) ==
    /\ believes[i]
    /\ lock = i
    /\ lock' = None
    /\ StepDown(i)
    /\ UNCHANGED <<now, rows, jobs, triggered, floor, up>>

(* Nobody's function: the server ends a session and with it the lock.  The *)
(* instance does not know; from here on it is a stale leader.              *)
DropSession(i) ==
    /\ lock = i
    /\ lock' = None
    /\ UNCHANGED <<now, rows, jobs, triggered, floor, up, believes, snapshot>>

(* Nobody's function: a process dies, and its session with it.  A          *)
(* statement that still commits after its client's death is an             *)
(* AtomicEnqueue just before the Crash.                                    *)
Crash(i) ==
    /\ up[i]
    /\ up' = [up EXCEPT ![i] = FALSE]
    /\ StepDown(i)
    /\ lock' = IF lock = i THEN None ELSE lock
    /\ UNCHANGED <<now, rows, jobs, triggered, floor>>

(* Nobody's function: the process is started again.                        *)
Recover(i) ==
    /\ ~up[i]
    /\ up' = [up EXCEPT ![i] = TRUE]
    /\ UNCHANGED <<now, rows, jobs, triggered, floor, lock, believes, snapshot>>

(* awa_cron.actions.pause                                                  *)
Pause(s) ==
    /\ rows[s] # None
    /\ ~rows[s].paused
    /\ rows' = [rows EXCEPT ![s] = PausedRow(rows[s])]
    /\ UNCHANGED <<now, jobs, triggered, floor, lock, up, believes, snapshot>>

(* awa_cron.actions.resume                                                 *)
Resume(s) ==
    /\ rows[s] # None
    /\ rows[s].paused
    /\ rows' = [rows EXCEPT ![s] = ResumedRow(rows[s])]
    /\ UNCHANGED <<now, jobs, triggered, floor, lock, up, believes, snapshot>>

(* awa_cron.actions.trigger: one job at once, paused or not.               *)
Trigger(s) ==
    /\ rows[s] # None
    /\ triggered[s] < MaxTriggers
    /\ triggered' = [triggered EXCEPT ![s] = @ + 1]
    /\ UNCHANGED <<now, rows, jobs, floor, lock, up, believes, snapshot>>

(* awa_cron.actions.sync, by any instance for its own schedules: insert    *)
(* the row where there is none; where the definition differs, first settle *)
(* what is due under the old one, then anchor the new one at the clock.    *)
(* Neither anchor ever moves back, even if the clock has.  An unchanged    *)
(* definition writes nothing and is no step.                               *)
Sync(s, d) ==
    /\ IF rows[s] = None
       THEN /\ rows' = Upserted(s, InsertedRow(s, d))
            /\ jobs' = jobs
       ELSE /\ rows[s].def # d
            /\ rows' = Upserted(s, EditedRow(s, rows[s], d))
            /\ jobs' = [jobs EXCEPT ![s] = WithJobs(@, SettledFires(s, rows[s]))]
    /\ UNCHANGED <<now, triggered, floor, lock, up, believes, snapshot>>

(* awa_cron.actions.remove: the row goes, its jobs stay, and the event     *)
(* keeps its last fire.                                                    *)
Remove(s) ==
    /\ rows[s] # None
    /\ rows' = [rows EXCEPT ![s] = None]
    /\ floor' = [floor EXCEPT ![s] = FloorOnRemove(s)]
    /\ UNCHANGED <<now, jobs, triggered, lock, up, believes, snapshot>>

Environment ==
    \/ AdvanceClock
    \/ \E i \in Instances :
          \/ LoseLeader(i)
          \/ DropSession(i)
          \/ Crash(i)
          \/ Recover(i)
    \/ \E s \in Schedules :
          \/ Pause(s)
          \/ Resume(s)
          \/ Trigger(s)
          \/ \E d \in Definitions : Sync(s, d)
          \/ Remove(s)

----------------------------------------------------------------------------
Next == System \/ Environment

(* The two loops of an instance: one campaigns and checks the lock, one     *)
(* evaluates and writes.  Each goes on as long as it has something to do;  *)
(* what comes of it, a write that wins or one that loses, is not its       *)
(* choice.                                                                 *)
Lead(i) == AcquireLeader(i) \/ PingLeader(i)
Evaluate(i) == ReadCronState(i) \/ AtomicEnqueue(i) \/ CASFail(i)

Fairness == \A i \in Instances : WF_vars(Lead(i)) /\ WF_vars(Evaluate(i))

Spec == Init /\ [][Next]_vars /\ Fairness

(* The stable cluster of the liveness properties: schedules exist, paused  *)
(* or not, with a backlog or without; some instances are up; some believe  *)
(* that they lead, rightly or not.  From then on nobody pauses, edits or   *)
(* removes, nothing crashes and no session drops; every pause ends.        *)
StableInit ==
    /\ now \in Instants
    /\ rows \in [Schedules -> [def : Definitions, last : {None}, anchor : {0}, paused : BOOLEAN]]
    /\ jobs = [s \in Schedules |-> [f \in Instants |-> 0]]
    /\ triggered = [s \in Schedules |-> 0]
    /\ floor = [s \in Schedules |-> 0]
    /\ up \in {u \in [Instances -> BOOLEAN] : \E i \in Instances : u[i]}
    /\ believes \in {b \in [Instances -> BOOLEAN] : \A i \in Instances : b[i] => up[i]}
    /\ lock \in {i \in Instances : believes[i]} \cup {None}
    /\ snapshot = [i \in Instances |-> None]

StableNext ==
    \/ System
    \/ AdvanceClock
    \/ \E s \in Schedules : Resume(s) \/ Trigger(s)

StableSpec ==
    /\ StableInit
    /\ [][StableNext]_vars
    /\ Fairness
    /\ \A s \in Schedules : WF_vars(Resume(s))

----------------------------------------------------------------------------
(* Properties.  They speak of what can be observed, before and after a     *)
(* step, and lean on the operators above as little as they can, so that a  *)
(* fault in an operator shows.                                             *)

Kept(s) == rows[s] # None /\ rows'[s] # None
Edited(s) == Kept(s) /\ rows'[s].def # rows[s].def
Registered(s) == rows[s] = None /\ rows'[s] # None
Removed(s) == rows[s] # None /\ rows'[s] = None

NewFires(s) ==
    IF jobs'[s] = jobs[s] THEN {}  \* the usual case, and much cheaper for TLC
    ELSE {f \in Instants : jobs'[s][f] # jobs[s][f]}

Missed(s) ==
    IF rows[s] = None THEN {}
    ELSE {f \in FiresOf[rows[s].def] :
             rows[s].anchor < f /\ f <= now /\ (rows[s].last = None \/ rows[s].last < f)}

(* What a pass over schedule s owes at this moment. *)
Owed(s) ==
    LET missed == Missed(s)
    IN  IF Policy[s] = "coalesce"
        THEN {f \in missed : \A g \in missed : g <= f}
        ELSE {f \in missed : Cardinality({g \in missed : g < f}) < PassLimit}

(* P05.  The lock is one variable, so there is one holder; a session that  *)
(* ends frees it, so the holder runs and knows.  Only who believes, reads. *)
LeaderAlive ==
    /\ lock # None => up[lock] /\ believes[lock]
    /\ \A i \in Instances :
          /\ believes[i] => up[i]
          /\ snapshot[i] # None => believes[i]

(* P05.  Who begins to believe has just been given a lock that was free,   *)
(* and who is given it did not believe before.  A lock that goes, goes     *)
(* alone or with its holder's belief; nobody else's end frees it.          *)
ElectionTakesLock ==
    [][/\ \A i \in Instances : believes'[i] /\ ~believes[i] => lock = None /\ lock' = i
       /\ lock' # lock =>
             IF lock = None
             THEN ~believes[lock'] /\ believes'[lock']
             ELSE /\ lock' = None
                  /\ \A i \in Instances \ {lock} : up'[i] = up[i] /\ believes'[i] = believes[i]]_vars

(* P07, P10, P12.  A fire is enqueued only past `last` and past the        *)
(* anchor; `last` rises with it, and a later row's anchor is at or above.  *)
NoDuplicateFire == \A s \in Schedules : \A f \in Instants : jobs[s][f] <= 1

(* P09.  One statement does both, so jobs appear exactly when `last` moves,*)
(* and it moves to the newest of them.  No row, no automatic job.          *)
MarkIffJob ==
    [][\A s \in Schedules :
          /\ NewFires(s) # {} <=> Kept(s) /\ rows'[s].last # rows[s].last
          /\ NewFires(s) # {} => rows'[s].last = Max(NewFires(s))]_vars

(* P09, as a state: an instant that is marked has its job, or it is still  *)
(* in the hands of somebody who can make it.                               *)
NoLostFire ==
    \A s \in Schedules :
        rows[s] # None /\ rows[s].last # None /\ jobs[s][rows[s].last] = 0 =>
            \E i \in Instances :
                /\ up[i]
                /\ snapshot[i] # None
                /\ snapshot[i][s] # None
                /\ rows[s].last \in Range(snapshot[i][s].fires)

(* P11.  Every new job is for an instant after all instants that ever had  *)
(* one, in this life of the schedule and in earlier ones.                  *)
FiresAdvance ==
    [][\A s \in Schedules : \A f \in NewFires(s) : \A g \in Instants :
          jobs[s][g] > 0 => g < f]_vars

(* P13.  The write looks at the pause again.                               *)
PausedBlocksEnqueue ==
    [][\A s \in Schedules : rows[s] # None /\ rows[s].paused => NewFires(s) = {}]_vars

(* P15.  Pause and resume write one column.                                *)
PauseTouchesOnlyPause ==
    [][\A s \in Schedules :
          Kept(s) /\ rows'[s].paused # rows[s].paused =>
              /\ rows' = [rows EXCEPT ![s].paused = ~@]
              /\ UNCHANGED <<now, jobs, triggered, floor, lock, up, believes, snapshot>>]_vars

(* P16.  A pass freezes one fire, the latest that is due, and a step makes *)
(* at most that one.  (Only with a sound evaluator.)                       *)
CoalesceOnlyLatest ==
    [][\A s \in Schedules : Policy[s] = "coalesce" =>
          /\ Cardinality(NewFires(s)) <= 1
          /\ \A i \in Instances :
                snapshot[i] = None /\ snapshot'[i] # None /\ snapshot'[i][s] # None =>
                    Range(snapshot'[i][s].fires) = Owed(s)]_vars

(* P17.  The instants that become jobs are the oldest that are owed, with  *)
(* no gap: the row is as read, so the first frozen fire is the first that  *)
(* follows its `last` and its anchor.  (Only with a sound evaluator.)      *)
CatchUpContiguous ==
    [][\A s \in Schedules : Policy[s] = "catch_up" =>
          \A f \in NewFires(s) : \A g \in Missed(s) : g < f => g \in NewFires(s)]_vars

(* P17.  Neither a pass nor the settling of an edit exceeds the limit.     *)
PassBounded ==
    [][\A s \in Schedules : Cardinality(NewFires(s)) <= PassLimit]_vars

(* P08, P36.  A pass that is over while its instance goes on has made jobs *)
(* for every schedule whose row is still as it was read and whose fires    *)
(* are in order; what became of the others has held back none of them.     *)
PassEnqueuesEachSchedule ==
    [][\A i \in Instances : snapshot[i] # None /\ snapshot'[i] = None /\ believes'[i] =>
          \A s \in Schedules :
              LET frozen == snapshot[i][s]
                  asRead == [def |-> frozen.def, last |-> frozen.expected,
                             anchor |-> frozen.anchor, paused |-> FALSE]
                  inOrder == \A f \in Range(frozen.fires) :
                                 asRead.anchor < f /\ After(f, asRead.last) /\ f <= now
              IN  frozen # None /\ rows[s] = asRead /\ inOrder =>
                      NewFires(s) = Range(frozen.fires)]_vars

(* P19.  "Due" means due by the clock of the statement that writes.        *)
NoEarlyFire == [][\A s \in Schedules : \A f \in NewFires(s) : f <= now]_vars

(* P20.  Jobs are for instants after the anchor; registering and editing   *)
(* set it to the clock or later, never back, and nothing else moves it.    *)
NoRetroactiveFire ==
    [][\A s \in Schedules :
          /\ \A f \in NewFires(s) : f > rows[s].anchor
          /\ Registered(s) => rows'[s].anchor = Max({now, floor[s]})
          /\ Edited(s) => rows'[s].anchor = Max({now, rows[s].anchor})
          /\ Kept(s) /\ ~Edited(s) => rows'[s].anchor = rows[s].anchor]_vars

(* P20.  Whatever becomes a job is an instant of the definition that the   *)
(* row has: the write looks at it again.  (Only with a sound evaluator.)   *)
FiresFitDefinition ==
    [][\A s \in Schedules : NewFires(s) \subseteq
          (IF rows[s] = None THEN {} ELSE FiresOf[rows[s].def])]_vars

(* P20b.  An edit makes what was owed, unless paused, in the same step.    *)
EditSettles ==
    [][\A s \in Schedules : Edited(s) =>
          NewFires(s) = (IF rows[s].paused THEN {} ELSE Owed(s))]_vars

(* P02.  Rows vanish by Remove alone, one at a time, and a sync writes no  *)
(* row but its own.                                                        *)
SyncNeverDeletes ==
    [][\A s \in Schedules :
          /\ Removed(s) => Remove(s)
          /\ Removed(s) \/ Registered(s) \/ Edited(s) =>
                \A r \in Schedules \ {s} : rows'[r] = rows[r]]_vars

(* P04.  A sync of what is stored is no step.                              *)
UnchangedSyncWritesNothing ==
    \A s \in Schedules : rows[s] # None => ~ENABLED <<Sync(s, rows[s].def)>>_vars

(* P03.  A sync keeps the pause, and `last` unless it settles.             *)
SyncPreservesPauseAndLast ==
    [][\A s \in Schedules, d \in Definitions :
          rows' # rows /\ rows[s] # None /\ Sync(s, d) =>
          /\ rows'[s].paused = rows[s].paused
          /\ rows'[s].last = IF NewFires(s) = {} THEN rows[s].last ELSE Max(NewFires(s))]_vars

(* P22.  A row that is registered, or comes back, starts fresh.            *)
RegisterStartsFresh ==
    [][\A s \in Schedules : Registered(s) =>
          /\ rows'[s].last = None
          /\ ~rows'[s].paused]_vars

(* P21.  A trigger needs a row, and nothing of that row.                   *)
TriggerIgnoresPause ==
    \A s \in Schedules :
        rows[s] # None /\ triggered[s] < MaxTriggers =>
            ENABLED (Trigger(s) /\ triggered'[s] # triggered[s])

(* P21.  A trigger makes one job of a schedule that there is, and touches  *)
(* nothing else.                                                           *)
TriggerLeavesSchedule ==
    [][\A s \in Schedules : triggered'[s] # triggered[s] =>
          /\ rows[s] # None
          /\ triggered' = [triggered EXCEPT ![s] = @ + 1]
          /\ UNCHANGED <<now, rows, jobs, floor, lock, up, believes, snapshot>>]_vars

(* P13, P15, P22.  What operators and deployments ask for can be done at   *)
(* any time, whatever the system is doing, and then is done.               *)
OperatorsAreHeard ==
    \A s \in Schedules :
        /\ rows[s] # None =>
              /\ ~rows[s].paused => ENABLED (Pause(s) /\ rows'[s].paused)
              /\ rows[s].paused => ENABLED (Resume(s) /\ ~rows'[s].paused)
              /\ ENABLED (Remove(s) /\ rows'[s] = None)
        /\ \A d \in Definitions :
              rows[s] = None \/ rows[s].def # d => ENABLED (Sync(s, d) /\ rows'[s].def = d)

(* P22.  Jobs once made are made; no step takes one back.                  *)
RemoveLeavesJobs ==
    [][\A s \in Schedules :
          /\ \A f \in Instants : jobs'[s][f] >= jobs[s][f]
          /\ triggered'[s] >= triggered[s]
          /\ Removed(s) => NewFires(s) = {}]_vars

----------------------------------------------------------------------------
(* Liveness, of StableSpec.                                                *)

(* P06.  A stale leader's ping stays enabled until it is done.             *)
StaleLeaderEventuallyStepsDown ==
    \A i \in Instances : (believes[i] /\ lock # i) ~> ~believes[i]

(* P08, P31.  The latest due fire of a coalescing schedule becomes a job,  *)
(* or a later fire takes its place before and becomes one.  Each round of  *)
(* read and write that fails does so because `last` moved, and it can move *)
(* only as often as there are fires.                                       *)
CoalescedLatestFireEventuallyEnqueued ==
    \A s \in Schedules : Policy[s] = "coalesce" =>
        \A f \in Instants :
            f \in Owed(s) ~> \E g \in Instants : g >= f /\ jobs[s][g] > 0

(* P08, P32.  Every missed fire of a catch-up schedule becomes a job.      *)
CatchUpFiresEventuallyEnqueued ==
    \A s \in Schedules : Policy[s] = "catch_up" =>
        \A f \in Instants : f \in Missed(s) ~> jobs[s][f] > 0

----------------------------------------------------------------------------
(* Refinement.  Seen from outside, all of the above is one page.  Jobs are *)
(* mapped as numbers, not as a set, so that a second one would show.       *)

Outside == INSTANCE ExactlyOnce WITH byHand <- triggered

RefinesExactlyOnce == Outside!Spec

=============================================================================
