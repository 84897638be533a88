--------------------------- MODULE MCAwaRetention ---------------------------
(***************************************************************************)
(* Small clusters for AwaRetention, retentions that take too much, and     *)
(* states that must be reachable.                                          *)
(***************************************************************************)
EXTENDS AwaRetention

MCFiresOf == [d \in Definitions |-> Instants \ {0}]
MCPolicy == [s \in Schedules |-> "coalesce"]

(* Every event goes when it is old enough. *)
NothingKept(s, kept) == TRUE

(* The latest removal is kept; but a row that came back and went again     *)
(* before it had fired tells nothing.                                      *)
LatestKept(s, kept) == latest[s] \in kept

(* Witnesses. *)
NeverPurged == [][~\E s \in Schedules : PurgeEvents(s)]_allVars
NeverBackAfterPurge ==
    \A s \in Schedules : ~(rows[s] # None /\ rows[s].anchor > 0 /\ removals[s] = {floor[s]} /\ floor[s] > now)

=============================================================================
