-------------------------- MODULE AwaCronInductive --------------------------
(***************************************************************************)
(* Why no fire becomes two jobs: one invariant that every step keeps.      *)
(*                                                                         *)
(* A run from Init visits what can be reached within its bounds.  Here TLC *)
(* starts in every state that satisfies IndInv, reachable or not, and      *)
(* takes one step: if all of them lead to such states again, IndInv holds  *)
(* however long a run is.  What a pass has frozen is arbitrary, so nothing *)
(* rests on the evaluator, nor on how a pass came about; the clock slips.  *)
(*                                                                         *)
(* scripts/assurance/inductive.py puts the same to z3, without bounds.     *)
(***************************************************************************)
EXTENDS MCAwaCron

(* The types, as sets that TLC can enumerate: NoDuplicateFire is in them.  *)
Typed ==
    /\ now \in Instants
    /\ rows \in [Schedules -> Row \cup {None}]
    /\ jobs \in [Schedules -> [Instants -> {0, 1}]]
    /\ triggered \in [Schedules -> 0..MaxTriggers]
    /\ floor \in [Schedules -> Instants]
    /\ up \in [Instances -> BOOLEAN]
    /\ believes \in [Instances -> BOOLEAN]
    /\ lock \in Instances \cup {None}
    /\ snapshot \in [Instances -> [Schedules -> Frozen \cup {None}] \cup {None}]

(* The floor holds down what earlier rows have fired, `last` what this one *)
(* has.  (The anchor is no such bound: an edit moves it past everything.)  *)
FiredIsPast ==
    \A s \in Schedules : \A f \in Instants :
        jobs[s][f] > 0 =>
            \/ f <= floor[s]
            \/ rows[s] # None /\ rows[s].last # None /\ f <= rows[s].last

(* So a fire past the anchor is past all that earlier rows have fired.     *)
AnchorAboveFloor ==
    \A s \in Schedules : rows[s] # None => floor[s] <= rows[s].anchor

(* What is marked has its job, and needs nobody who still has to make it.  *)
MarkedHasJob ==
    \A s \in Schedules :
        rows[s] # None /\ rows[s].last # None => jobs[s][rows[s].last] > 0

IndInv ==
    /\ Typed
    /\ FiredIsPast
    /\ AnchorAboveFloor
    /\ MarkedHasJob
    /\ LeaderAlive

(* The same with one part missing.  Neither is kept by every step, though  *)
(* both say that no fire has two jobs.                                     *)
WithoutFiredIsPast == Typed /\ AnchorAboveFloor /\ MarkedHasJob /\ LeaderAlive
WithoutAnchorAboveFloor == Typed /\ FiredIsPast /\ MarkedHasJob /\ LeaderAlive

=============================================================================
