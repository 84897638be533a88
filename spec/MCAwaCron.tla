----------------------------- MODULE MCAwaCron -----------------------------
(***************************************************************************)
(* What a model checker needs beside AwaCron: small concrete schedules,    *)
(* variants that are broken on purpose, and states that must be reachable. *)
(*                                                                         *)
(* A variant replaces one operator of the protocol, or two where one is    *)
(* covered by another, through `Operator <- Variant` in its cfg.  Each cfg *)
(* names the one property that has to catch it; a variant that nobody      *)
(* catches would mean that the property says less than we think.           *)
(***************************************************************************)
EXTENDS AwaCron, TLC

----------------------------------------------------------------------------
(* Schedules and definitions.  "odd" fires at a subset of "each", so edits *)
(* both add and take away instants.                                        *)

MCFiresOf ==
    [d \in Definitions |->
        IF d = "odd" THEN {f \in Instants : f % 2 = 1} ELSE Instants \ {0}]

MCPolicy == [s \in Schedules |-> IF s = "poll" THEN "catch_up" ELSE "coalesce"]

(* Instances are interchangeable; for safety only. *)
MCSymmetry == Permutations(Instances)

----------------------------------------------------------------------------
(* Variants of the guards.                                                 *)

Always(row, frozen) == TRUE

----------------------------------------------------------------------------
(* Variants of the evaluator.                                              *)

DueWithoutAnchor(row, t) == {f \in FiresOf[row.def] : After(f, row.last) /\ f <= t}

DueTooEarly(row, t) ==
    {f \in FiresOf[row.def] : f > row.anchor /\ After(f, row.last) /\ f <= t + 1}

CoalesceToEarliest(due) == <<First(Ascending(due))>>

CatchUpNewest(due) ==
    LET count == Cardinality(due)
    IN  SubSeq(Ascending(due), 1 + count - Smaller(PassLimit, count), count)

CatchUpAll(due) == Ascending(due)

PausedRowsEvaluated(s) ==
    IF rows[s] = None THEN {None}
    ELSE IF Chosen(s, rows[s], now) = <<>> THEN {None}
    ELSE {FrozenOf(rows[s], Chosen(s, rows[s], now))}

----------------------------------------------------------------------------
(* Variants of the write: two statements, with anything in between.  A     *)
(* frozen entry whose first half is done carries one field more.           *)

InFlight(i) ==
    {s \in Schedules : snapshot[i][s] # None /\ "half" \in DOMAIN snapshot[i][s]}

SplitWinners(i) ==
    IF InFlight(i) # {} THEN InFlight(i)
    ELSE {s \in Schedules :
             rows[s] # None /\ snapshot[i][s] # None /\ Passes(rows[s], snapshot[i][s])}

HalfDone(i, won) ==
    [snapshot EXCEPT ![i] =
        [s \in Schedules |->
            IF s \in won
            THEN [key \in DOMAIN snapshot[i][s] \cup {"half"} |->
                    IF key = "half" THEN TRUE ELSE snapshot[i][s][key]]
            ELSE None]]

MarkRows(i, won) ==
    rows' = [s \in Schedules |->
        IF s \in won /\ rows[s] # None /\ LastAsRead(rows[s], snapshot[i][s])
        THEN Marked(rows[s], snapshot[i][s].fires) ELSE rows[s]]

InsertJobs(i, won) ==
    jobs' = [s \in Schedules |->
        IF s \in won THEN WithJobs(jobs[s], snapshot[i][s].fires) ELSE jobs[s]]

MarkThenInsert(i) ==
    /\ up[i]
    /\ snapshot[i] # None
    /\ SplitWinners(i) # {}
    /\ IF InFlight(i) = {}
       THEN /\ MarkRows(i, SplitWinners(i))
            /\ snapshot' = HalfDone(i, SplitWinners(i))
            /\ UNCHANGED jobs
       ELSE /\ InsertJobs(i, InFlight(i))
            /\ snapshot' = [snapshot EXCEPT ![i] = None]
            /\ UNCHANGED rows
    /\ UNCHANGED <<now, triggered, floor, lock, up, believes>>

InsertThenMark(i) ==
    /\ up[i]
    /\ snapshot[i] # None
    /\ SplitWinners(i) # {}
    /\ IF InFlight(i) = {}
       THEN /\ InsertJobs(i, SplitWinners(i))
            /\ snapshot' = HalfDone(i, SplitWinners(i))
            /\ UNCHANGED rows
       ELSE /\ MarkRows(i, InFlight(i))
            /\ snapshot' = [snapshot EXCEPT ![i] = None]
            /\ UNCHANGED jobs
    /\ UNCHANGED <<now, triggered, floor, lock, up, believes>>

----------------------------------------------------------------------------
(* Variants of what operators and deployments do.                          *)

SettleNothing(s, row) == <<>>
SettleThoughPaused(s, row) == Chosen(s, row, now)

AnchorAtClock(row) == now
AnchorStays(row) == row.anchor
AnchorAtZero(s) == 0

FloorForgotten(s) == floor[s]

PauseMarks(row) == [row EXCEPT !.paused = TRUE, !.last = now]

EditResumes(s, row, d) ==
    [Marked(row, SettledFires(s, row)) EXCEPT
        !.def = d, !.anchor = AnchorOnEdit(row), !.paused = FALSE]

EditForgetsLast(s, row, d) ==
    [row EXCEPT !.def = d, !.anchor = AnchorOnEdit(row), !.last = None]

DeleteTheRest(s, row) == [r \in Schedules |-> IF r = s THEN row ELSE None]

InsertPaused(s, d) ==
    [def |-> d, last |-> None, anchor |-> AnchorOnInsert(s), paused |-> TRUE]

TriggerMarks(s) ==
    /\ rows[s] # None
    /\ triggered[s] < MaxTriggers
    /\ triggered' = [triggered EXCEPT ![s] = @ + 1]
    /\ rows' = [rows EXCEPT ![s].last = now]
    /\ UNCHANGED <<now, jobs, floor, lock, up, believes, snapshot>>

TriggerUnlessPaused(s) ==
    /\ rows[s] # None
    /\ ~rows[s].paused
    /\ triggered[s] < MaxTriggers
    /\ triggered' = [triggered EXCEPT ![s] = @ + 1]
    /\ UNCHANGED <<now, rows, jobs, floor, lock, up, believes, snapshot>>

RemoveWithJobs(s) ==
    /\ rows[s] # None
    /\ rows' = [rows EXCEPT ![s] = None]
    /\ floor' = [floor EXCEPT ![s] = FloorOnRemove(s)]
    /\ jobs' = [jobs EXCEPT ![s] = [f \in Instants |-> 0]]
    /\ UNCHANGED <<now, triggered, lock, up, believes, snapshot>>

----------------------------------------------------------------------------
(* Variants of leadership and of the stable cluster.                       *)

Never(i) == FALSE

BelieveWithoutLock(i) ==
    /\ up[i]
    /\ ~believes[i]
    /\ lock = None
    /\ believes' = [believes EXCEPT ![i] = TRUE]
    /\ UNCHANGED <<now, rows, jobs, triggered, floor, lock, up, snapshot>>

CrashLeavesLock(i) ==
    /\ up[i]
    /\ up' = [up EXCEPT ![i] = FALSE]
    /\ StepDown(i)
    /\ UNCHANGED <<now, rows, jobs, triggered, floor, lock>>

(* The liveness properties do not hold where somebody may pause again and  *)
(* again between read and write.                                           *)
StormNext == StableNext \/ \E s \in Schedules : Pause(s)

StormSpec ==
    /\ StableInit
    /\ [][StormNext]_vars
    /\ Fairness
    /\ \A s \in Schedules : WF_vars(Resume(s))

----------------------------------------------------------------------------
(* Witnesses: each says that something never happens, and has to be        *)
(* violated, or the properties above hold of too little.                   *)

Fails(s, i, guards) ==
    LET row == rows[s]
        frozen == snapshot[i][s]
    IN  /\ row # None
        /\ frozen # None
        /\ LastAsRead(row, frozen) # ("LastAsRead" \in guards)
        /\ DefinedAsRead(row, frozen) # ("DefinedAsRead" \in guards)
        /\ Unpaused(row, frozen) # ("Unpaused" \in guards)
        /\ Advances(row, frozen) # ("Advances" \in guards)
        /\ AfterAnchor(row, frozen) # ("AfterAnchor" \in guards)
        /\ AlreadyDue(row, frozen) # ("AlreadyDue" \in guards)

Reachable(guards) ==
    \E i \in Instances, s \in Schedules : snapshot[i] # None /\ Fails(s, i, guards)

(* Each guard can be the only one that stands in the way. *)
NeverOnlyLastAsRead == ~Reachable({"LastAsRead"})
NeverOnlyDefinedAsRead == ~Reachable({"DefinedAsRead"})
NeverOnlyUnpaused == ~Reachable({"Unpaused"})
NeverOnlyAdvances == ~Reachable({"Advances"})
NeverOnlyAfterAnchor == ~Reachable({"AfterAnchor"})
NeverOnlyAlreadyDue == ~Reachable({"AlreadyDue"})

(* A stale leader comes too late: its instants already have their jobs. *)
NeverStaleLeaderLoses ==
    ~ \E i \in Instances, s \in Schedules :
        /\ believes[i]
        /\ lock \notin {i, None}
        /\ snapshot[i] # None
        /\ snapshot[i][s] # None
        /\ Winners(i) = {}
        /\ \A f \in Range(snapshot[i][s].fires) : jobs[s][f] > 0

(* More is missed than one pass may bring. *)
NeverLongCatchUp ==
    ~ \E s \in Schedules : Policy[s] = "catch_up" /\ Cardinality(Missed(s)) > PassLimit

(* A schedule is edited between the read and the write: what was frozen is *)
(* not an instant of the new definition.                                   *)
NeverEditedInBetween ==
    ~ \E i \in Instances, s \in Schedules :
        /\ snapshot[i] # None
        /\ snapshot[i][s] # None
        /\ rows[s] # None
        /\ ~(Range(snapshot[i][s].fires) \subseteq FiresOf[rows[s].def])

(* A schedule is enqueued, removed and registered again between the read   *)
(* and the write: `last` is as it was read, and the job is there already.  *)
NeverRecreatedInBetween ==
    ~ \E i \in Instances, s \in Schedules :
        /\ snapshot[i] # None
        /\ snapshot[i][s] # None
        /\ rows[s] # None
        /\ LastAsRead(rows[s], snapshot[i][s])
        /\ jobs[s][First(snapshot[i][s].fires)] > 0

(* One pass wins for one schedule and loses for another. *)
NeverMixedPass ==
    ~ \E i \in Instances :
        /\ snapshot[i] # None
        /\ Winners(i) # {}
        /\ \E s \in Schedules \ Winners(i) : snapshot[i][s] # None

=============================================================================
