----------------------------- MODULE MCAwaCron -----------------------------
(***************************************************************************)
(* What a model checker needs beside AwaCron: small concrete schedules,    *)
(* variants that are broken on purpose (AwaCronVariants), and states that  *)
(* must be reachable.                                                      *)
(***************************************************************************)
EXTENDS AwaCronVariants, TLC

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
