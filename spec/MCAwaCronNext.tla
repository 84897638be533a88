---------------------------- MODULE MCAwaCronNext ----------------------------
(***************************************************************************)
(* Small clusters for AwaCronNext, variants that are broken on purpose,    *)
(* and states that must be reachable.                                      *)
(***************************************************************************)
EXTENDS AwaCronNext

MCFiresOf ==
    [d \in Definitions |->
        IF d = "odd" THEN {f \in Instants : f % 2 = 1}
        ELSE IF d = "last" THEN {MaxTime}
        ELSE Instants \ {0}]

MCPolicy == [s \in Schedules |-> IF s = "poll" THEN "catch_up" ELSE "coalesce"]

(* Of a row that is set back by hand the same instant fires again. *)
FewJobs == \A s \in Schedules : \A f \in Instants : jobs[s][f] <= 1

----------------------------------------------------------------------------
(* Variants.                                                               *)

(* The next fire is reckoned from the clock of the pass, and a catch-up    *)
(* schedule whose pass had a limit loses what the limit left over.         *)
NextAfterClock(frozen) == FirstAfter(frozen.def, now)

(* Of two fires that follow, the second. *)
NextButOne(frozen) ==
    LET one == FirstAfter(frozen.def, Cron!Last(frozen.fires))
    IN  IF one = Never THEN Never ELSE FirstAfter(frozen.def, one)

(* The guards of the note. *)
NotedAnyway(row, noted) == TRUE

(* After the clock at which it was noted, not after the row's own base. *)
NoteAfterClock(noted) == FirstAfter(noted.def, now)

(* The anchor may be earlier than the clock that was read. *)
NextOfSyncAnyway(d, t, anchor) == FirstAfter(d, t)

(* A schedule that is there keeps the next fire of its old definition. *)
SyncKeepsNext(s, d) ==
    /\ Cron!Sync(s, d)
    /\ UNCHANGED <<nextFire, noting>>

NextStaysAtRewrite(s) == nextFire[s]

(* What is due at this very instant is left for later. *)
SelectedLater(kind, s) ==
    /\ rows[s] # None
    /\ ~rows[s].paused
    /\ CASE kind = "due" -> nextFire[s] # None /\ nextFire[s] < now
         [] kind = "unknown" -> nextFire[s] = None
         [] kind = "all" -> FALSE

OnlyDue == {"due"}
OnlyUnknown == {"unknown"}
DueAndUnknown == {"due", "unknown"}

(* What is found is not written back. *)
NoteNothing(i) ==
    /\ up[i]
    /\ noting[i] # None
    /\ noting' = [noting EXCEPT ![i] = None]
    /\ UNCHANGED <<now, rows, jobs, triggered, floor, lock, up, believes, snapshot, nextFire>>

RemoveLeavesNext(s) ==
    /\ Cron!Remove(s)
    /\ UNCHANGED <<nextFire, noting>>

----------------------------------------------------------------------------
(* Witnesses: each says that something never happens, and has to be        *)
(* violated.                                                               *)

Noting(s) == \E i \in Instances : noting[i] # None /\ noting[i][s] # None

NeverEarly ==
    ~ \E s \in Schedules :
        rows[s] # None /\ nextFire[s] # None /\ nextFire[s] # DerivedNext(rows[s])

NeverUnknownByClock ==
    ~ \E s \in Schedules : rows[s] # None /\ nextFire[s] = None /\ rows[s].anchor > 0

NeverNotesOther ==
    ~ \E i \in Instances, s \in Schedules :
        /\ noting[i] # None
        /\ noting[i][s] # None
        /\ rows[s] # None
        /\ ~StillAsNoted(rows[s], noting[i][s])

NeverOver == ~ \E s \in Schedules : rows[s] # None /\ nextFire[s] = Never

NeverBoth ==
    ~ \E s, r \in Schedules :
        /\ s # r
        /\ Noting(s)
        /\ \E j \in Instances : snapshot[j] # None /\ snapshot[j][r] # None

NeverDueAgainAtOnce ==
    ~ \E s \in Schedules :
        rows[s] # None /\ rows[s].last # None /\ nextFire[s] # None /\ nextFire[s] <= now

=============================================================================
