---------------------------- MODULE MCAwaCronSync ----------------------------
(***************************************************************************)
(* Small deployments for AwaCronSync, variants that are broken on purpose, *)
(* and states that must be reachable.                                      *)
(***************************************************************************)
EXTENDS AwaCronSync, TLC

MCFiresOf ==
    [d \in Definitions |->
        IF d = "odd" THEN {f \in Instants : f % 2 = 1} ELSE Instants \ {0}]

MCPolicy == [s \in Schedules |-> IF s = "poll" THEN "catch_up" ELSE "coalesce"]

(* Every schedule, under one definition or the other; or nothing any more. *)
Each == [s \in Schedules |-> "each"]
Odd == [s \in Schedules |-> "odd"]
Nothing == [s \in Schedules |-> None]

(* One of two processes is replaced by a new version with another          *)
(* definition, and perhaps back; the other is the old version still.       *)
Rolling == [p \in Processes |-> IF p = "web" THEN {Each, Odd} ELSE {Each}]

(* Two deployments: both register "digest", one drops it with its next     *)
(* version, and the other has "poll" as well.                              *)
Overlapping ==
    [p \in Processes |->
        IF p = "web" THEN {[Each EXCEPT !["poll"] = None], Nothing} ELSE {Odd}]

(* Each has its own. *)
Disjoint ==
    [p \in Processes |->
        IF p = "web" THEN {[Each EXCEPT !["poll"] = None], [Odd EXCEPT !["poll"] = None]}
        ELSE {[Each EXCEPT !["digest"] = None]}]

(* They agree, whoever registers what; they don't. *)
Agreeing == [p \in Processes |-> {Each}]
Disagreeing == [p \in Processes |-> IF p = "web" THEN {Each} ELSE {Odd}]

----------------------------------------------------------------------------
(* Variants.                                                               *)

AnyVersion(write) == TRUE
SettleAnyway(row, write, at) == TRUE

AnchorAtClockOfBegin(begun, s) == begun.now
AnchorAtFloorOnly(begun, s) == begun.floor[s]
AnchorAtWrite(row, at) == Larger(now, row.anchor)
AnchorAtRead(row, at) == at

EditResumes(p, s) ==
    [Cron!Marked(rows[s], plans[p].writes[s].fires) EXCEPT
        !.def = plans[p].writes[s].def,
        !.anchor = AnchorOnEdit(rows[s], plans[p].at),
        !.paused = FALSE]

(* ON CONFLICT DO UPDATE. *)
InsertsAnyway(p) ==
    {s \in Schedules : plans[p].writes[s] # None /\ plans[p].writes[s].isNew}

DeletedUnlessRegistered(p, s) == IF registers[p][s] = None THEN None ELSE rows[s]
PausedUnlessRegistered(p, s) ==
    IF registers[p][s] = None /\ rows[s] # None THEN [rows[s] EXCEPT !.paused = TRUE] ELSE rows[s]

DiffersAnyway(p, s) == registers[p][s] # None

(* What this statement sees may be older than what it waits for: the same  *)
(* as a lock that is taken within the statement.                           *)
BeginWithoutLock(p) ==
    /\ plans[p] # None
    /\ plans[p].begun = None
    /\ plans' = [plans EXCEPT ![p].begun = [now |-> now, floor |-> floor]]
    /\ UNCHANGED <<now, rows, jobs, floor, snapshot, registers, syncLock>>

LockStays(p) == syncLock

ReadOfOneProcess(p) ==
    /\ p = "web"
    /\ plans[p] = None
    /\ LET writes == [s \in Schedules |-> PlannedWrite(p, s)]
       IN  /\ \E s \in Schedules : writes[s] # None
           /\ plans' = [plans EXCEPT ![p] = [at |-> now, writes |-> writes, begun |-> None]]
    /\ UNCHANGED <<now, rows, jobs, floor, snapshot, registers, syncLock>>

WriteWithoutReadingAgain(p) ==
    /\ plans[p] # None
    /\ plans[p].begun # None
    /\ LET written == Inserts(p) \cup Edits(p)
       IN  /\ rows' = [s \in Schedules |-> IF s \in written THEN Written(p, s) ELSE rows[s]]
           /\ jobs' = [s \in Schedules |->
                          IF s \in written
                          THEN Cron!WithJobs(jobs[s], plans[p].writes[s].fires) ELSE jobs[s]]
           /\ plans' = [q \in Processes |->
                          IF q # p THEN Outdated(plans[q], written)
                          ELSE IF \A s \in Schedules : plans[p].writes[s] # None => s \in written
                          THEN None ELSE [plans[p] EXCEPT !.begun = None]]
    /\ syncLock' = Unlocked(p)
    /\ UNCHANGED <<now, floor, snapshot, registers>>

----------------------------------------------------------------------------
(* Witnesses: each says that something never happens, and has to be        *)
(* violated.                                                               *)

Planned(p, s) == plans[p] # None /\ plans[p].writes[s] # None

NeverEnqueuedInBetween ==
    ~ \E p \in Processes, s \in Schedules :
        Planned(p, s) /\ plans[p].writes[s].fires # <<>> /\ rows[s] # None
        /\ jobs[s][Cron!Last(plans[p].writes[s].fires)] > 0

NeverPausedInBetween ==
    ~ \E p \in Processes, s \in Schedules :
        Planned(p, s) /\ plans[p].writes[s].fires # <<>> /\ rows[s] # None /\ rows[s].paused

NeverEditedInBetween ==
    ~ \E p \in Processes, s \in Schedules :
        Planned(p, s) /\ ~plans[p].writes[s].isNew /\ rows[s] # None
        /\ rows[s].def = plans[p].writes[s].def

NeverRemovedInBetween ==
    ~ \E p \in Processes, s \in Schedules :
        Planned(p, s) /\ ~plans[p].writes[s].isNew /\ rows[s] = None

NeverInsertedInBetween ==
    ~ \E p \in Processes, s \in Schedules :
        Planned(p, s) /\ plans[p].writes[s].isNew /\ rows[s] # None

(* Another fire of the old definition falls due between read and write. *)
NeverDueInBetween ==
    ~ \E p \in Processes, s \in Schedules :
        /\ Planned(p, s)
        /\ s \in Edits(p)
        /\ OwedBy(s, now) # OwedBy(s, plans[p].at)

NeverMixedSync ==
    ~ \E p \in Processes : \E s, r \in Schedules :
        /\ Planned(p, s)
        /\ s \in Inserts(p) \cup Edits(p)
        /\ Planned(p, r)
        /\ r \notin Inserts(p) \cup Edits(p)

(* A process holds the lock, has something to write, and is gone. *)
NeverCrashedInBetween ==
    [][\A p \in Processes :
          syncLock = p /\ syncLock' = None /\ registers' = registers /\ rows' = rows =>
              Inserts(p) \cup Edits(p) = {}]_vars

=============================================================================
