----------------------------- MODULE AwaCronNext -----------------------------
(***************************************************************************)
(* How a pass finds what is due without looking at every schedule.         *)
(*                                                                         *)
(* AwaCron's ReadCronState reads every row that is not paused.  With a     *)
(* hundred thousand of them that is too much for every second.  So each    *)
(* row carries the instant of its next fire, derived from the rest of the  *)
(* row, and a pass reads the rows whose next fire is due.  A next fire may *)
(* be unknown: whoever edits a row by hand does not work it out.  Unknown  *)
(* ones are read by a pass of their own, and all rows, from time to time,  *)
(* by a third.  What a pass finds is written back on the condition that    *)
(* the row is still as it was read.                                        *)
(*                                                                         *)
(* A next fire that is too early costs an evaluation that finds nothing.   *)
(* One that is too late loses a fire for a while, or for good: that it     *)
(* never is, is what this module is for.  Rows, guards and all steps but   *)
(* the read are AwaCron's.                                                 *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
    Instances, Schedules, Definitions, FiresOf, Policy, PassLimit, MaxTime,
    MaxTriggers, ClockMaySlip, None,  \* as in AwaCron
    RowsMayBeRewritten  \* may somebody write a row by hand, with anything in it?

VARIABLES
    now, rows, jobs, triggered, floor, lock, up, believes, snapshot,  \* as in AwaCron
    nextFire,  \* per schedule, the next fire as its row has it; None is unknown
    noting     \* per instance, the rows that its pass has read and found wrong about it

cronVars == <<now, rows, jobs, triggered, floor, lock, up, believes, snapshot>>
vars == <<now, rows, jobs, triggered, floor, lock, up, believes, snapshot, nextFire, noting>>

Cron == INSTANCE AwaCron WITH FaultyEvaluator <- FALSE

(* A pass that reads some rows and leaves out others is an evaluator that  *)
(* answers as it likes, which AwaCron knows.                               *)
AnyCron == INSTANCE AwaCron WITH FaultyEvaluator <- TRUE

Instants == 0..MaxTime
Never == MaxTime + 1  \* `infinity`: the definition has no fire any more

Noted == [def : Definitions, anchor : Instants, last : Instants \cup {None}]

TypeOK ==
    /\ Cron!TypeOK
    /\ nextFire \in [Schedules -> Instants \cup {Never, None}]
    /\ DOMAIN noting = Instances
    /\ \A i \in Instances :
          noting[i] # None =>
              /\ DOMAIN noting[i] = Schedules
              /\ \A s \in Schedules : noting[i][s] \in Noted \cup {None}

Init ==
    /\ Cron!Init
    /\ nextFire = [s \in Schedules |-> None]
    /\ noting = [i \in Instances |-> None]

----------------------------------------------------------------------------
(* What a next fire is.                                                    *)

FirstAfter(d, t) ==
    LET later == {f \in FiresOf[d] : f > t}
    IN  IF later = {} THEN Never ELSE CHOOSE f \in later : \A g \in later : f <= g

(* The instant after which a row's fires count. *)
Base(row) == IF row.last = None THEN row.anchor ELSE Cron!Larger(row.anchor, row.last)

DerivedNext(row) == FirstAfter(row.def, Base(row))

----------------------------------------------------------------------------
(* What the statements write beside AwaCron's part, in operators small     *)
(* enough to be broken one by one in MCAwaCronNext.                        *)

(* Three kinds of pass. *)
Kinds == {"due", "unknown", "all"}

Selected(kind, s) ==
    /\ rows[s] # None
    /\ ~rows[s].paused
    /\ CASE kind = "due" -> nextFire[s] # None /\ nextFire[s] <= now
         [] kind = "unknown" -> nextFire[s] = None
         [] kind = "all" -> TRUE

NotedOf(row) == [def |-> row.def, anchor |-> row.anchor, last |-> row.last]

NextOfEnqueue(frozen) == FirstAfter(frozen.def, Cron!Last(frozen.fires))

LastAsRead(row, noted) == row.last = noted.last
DefinedAsRead(row, noted) == row.def = noted.def /\ row.anchor = noted.anchor

StillAsNoted(row, noted) ==
    /\ LastAsRead(row, noted)
    /\ DefinedAsRead(row, noted)

NextOfNote(noted) == DerivedNext(noted)

(* A sync works out the next fire after the clock `t` that it has read;    *)
(* the statement keeps it if the anchor that it writes is no earlier.      *)
NextOfSync(d, t, anchor) == IF t <= anchor THEN FirstAfter(d, t) ELSE None

(* A trigger of the table: whoever writes what the next fire is derived    *)
(* from, and not the next fire with it, leaves it unknown.                 *)
NextOfRewrite(s) == None

----------------------------------------------------------------------------
(* The steps.                                                              *)

ReadPass(i, kind) ==
    LET page == {s \in Schedules : Selected(kind, s)}
        fires(s) == Cron!Chosen(s, rows[s], now)
        due == {s \in page : fires(s) # <<>>}
        wrong == {s \in page \ due : nextFire[s] # DerivedNext(rows[s])}
    IN  /\ due \cup wrong # {}
        /\ snapshot' = [snapshot EXCEPT ![i] =
              IF due = {} THEN None
              ELSE [s \in Schedules |-> IF s \in due THEN Cron!FrozenOf(rows[s], fires(s)) ELSE None]]
        /\ noting' = [noting EXCEPT ![i] =
              IF wrong = {} THEN None
              ELSE [s \in Schedules |-> IF s \in wrong THEN NotedOf(rows[s]) ELSE None]]

(* awa_cron.actions.read_cron_state: rows of one kind, and what is due of  *)
(* them.  A pass that finds nothing to write ends here.                    *)
ReadCronState(i) ==
    /\ up[i]
    /\ believes[i]
    /\ snapshot[i] = None
    /\ noting[i] = None
    /\ \E kind \in Kinds : ReadPass(i, kind)
    /\ UNCHANGED <<now, rows, jobs, triggered, floor, lock, up, believes, nextFire>>

(* awa_cron.actions.atomic_enqueue writes the next fire with the last.     *)
AtomicEnqueue(i) ==
    /\ Cron!AtomicEnqueue(i)
    /\ nextFire' = [s \in Schedules |->
          IF s \in Cron!Winners(i) THEN NextOfEnqueue(snapshot[i][s]) ELSE nextFire[s]]
    /\ UNCHANGED noting

(* awa_cron.actions.note_next: what was read and has nothing due.          *)
NoteNext(i) ==
    /\ up[i]
    /\ noting[i] # None
    /\ nextFire' = [s \in Schedules |->
          IF rows[s] # None /\ noting[i][s] # None /\ StillAsNoted(rows[s], noting[i][s])
          THEN NextOfNote(noting[i][s]) ELSE nextFire[s]]
    /\ noting' = [noting EXCEPT ![i] = None]
    /\ UNCHANGED cronVars

(* awa_cron.actions.sync; its clock is that of an earlier read, and the    *)
(* clock may have slipped since.  Where the next fire is what it was, the  *)
(* table's trigger takes it for forgotten, and it becomes unknown.         *)
Sync(s, d) ==
    /\ Cron!Sync(s, d)
    /\ \E t \in Instants :
          /\ ClockMaySlip \/ t <= now
          /\ \E next \in {None, NextOfSync(d, t, rows'[s].anchor)} :
                nextFire' = [nextFire EXCEPT ![s] = next]
    /\ UNCHANGED noting

Remove(s) ==
    /\ Cron!Remove(s)
    /\ nextFire' = [nextFire EXCEPT ![s] = None]
    /\ UNCHANGED noting

(* Nobody's function: a row is written by hand, or by another program.     *)
RewriteRow(s) ==
    /\ RowsMayBeRewritten
    /\ rows[s] # None
    /\ \E row \in Cron!Row :
          /\ row # rows[s]
          /\ row.paused = rows[s].paused
          /\ rows' = [rows EXCEPT ![s] = row]
    /\ nextFire' = [nextFire EXCEPT ![s] = NextOfRewrite(s)]
    /\ UNCHANGED <<now, jobs, triggered, floor, lock, up, believes, snapshot, noting>>

Forgets(i) == noting' = [noting EXCEPT ![i] = None] /\ UNCHANGED nextFire
Keeps == UNCHANGED <<nextFire, noting>>

System ==
    \E i \in Instances :
        \/ Cron!AcquireLeader(i) /\ Keeps
        \/ Cron!PingLeader(i) /\ Forgets(i)
        \/ ReadCronState(i)
        \/ AtomicEnqueue(i)
        \/ Cron!CASFail(i) /\ Keeps
        \/ NoteNext(i)

Environment ==
    \/ Cron!AdvanceClock /\ Keeps
    \/ \E i \in Instances :
          \/ Cron!LoseLeader(i) /\ Forgets(i)
          \/ Cron!DropSession(i) /\ Keeps
          \/ Cron!Crash(i) /\ Forgets(i)
          \/ Cron!Recover(i) /\ Keeps
    \/ \E s \in Schedules :
          \/ Cron!Pause(s) /\ Keeps
          \/ Cron!Resume(s) /\ Keeps
          \/ Cron!Trigger(s) /\ Keeps
          \/ \E d \in Definitions : Sync(s, d)
          \/ Remove(s)
          \/ RewriteRow(s)

Next == System \/ Environment

Evaluate(i) == ReadCronState(i) \/ AtomicEnqueue(i) \/ (Cron!CASFail(i) /\ Keeps) \/ NoteNext(i)
Lead(i) == (Cron!AcquireLeader(i) /\ Keeps) \/ (Cron!PingLeader(i) /\ Forgets(i))
Fairness == \A i \in Instances : WF_vars(Lead(i)) /\ WF_vars(Evaluate(i))

Spec == Init /\ [][Next]_vars /\ Fairness

(* AwaCron's stable cluster.  A next fire may be anything at the start,    *)
(* even late: another release, with other rules of time zones, may have    *)
(* worked it out.                                                          *)
StableInit ==
    /\ Cron!StableInit
    /\ nextFire \in [Schedules -> Instants \cup {Never, None}]
    /\ noting = [i \in Instances |-> None]

StableNext ==
    \/ System
    \/ Cron!AdvanceClock /\ Keeps
    \/ \E s \in Schedules : (Cron!Resume(s) \/ Cron!Trigger(s)) /\ Keeps

StableSpec ==
    /\ StableInit
    /\ [][StableNext]_vars
    /\ Fairness
    /\ \A s \in Schedules : WF_vars(Cron!Resume(s) /\ Keeps)

----------------------------------------------------------------------------
(* Properties.                                                             *)

(* No fire of a row that counts comes before the next fire as the row has  *)
(* it.                                                                     *)
NextNeverLate ==
    \A s \in Schedules :
        rows[s] # None /\ nextFire[s] # None =>
            \A f \in FiresOf[rows[s].def] :
                f > rows[s].anchor /\ (rows[s].last = None \/ f > rows[s].last) => nextFire[s] <= f

(* What AwaCron's read would see, one of these passes sees.                *)
NothingDueIsUnseen ==
    \A s \in Schedules :
        rows[s] # None /\ ~rows[s].paused /\ Cron!Due(rows[s], now) # {} =>
            \E kind \in {"due", "unknown"} : Selected(kind, s)

NextGoesWithItsRow == \A s \in Schedules : rows[s] = None => nextFire[s] = None

(* Every step of these passes is one of AwaCron's, or changes nothing that *)
(* it knows; so its safety properties hold here.                           *)
RefinesAwaCron == AnyCron!Init /\ [][AnyCron!Next]_cronVars

(* Its liveness properties are checked again, on these passes.             *)
CoalescedLatestFireEventuallyEnqueued == Cron!CoalescedLatestFireEventuallyEnqueued
CatchUpFiresEventuallyEnqueued == Cron!CatchUpFiresEventuallyEnqueued

(* In a stable cluster every next fire becomes exact: then a pass that has *)
(* nothing due reads nothing.                                              *)
NextEventuallyExact ==
    <>[](\A s \in Schedules : nextFire[s] = DerivedNext(rows[s]))

=============================================================================
