---------------------------- MODULE MCExactlyOnce ----------------------------
(***************************************************************************)
(* Bounds and two broken variants for ExactlyOnce.                         *)
(***************************************************************************)
EXTENDS ExactlyOnce

FewByHand == \A s \in Schedules : byHand[s] <= 1

FreshWhenDue(s, f) == f <= now
FreshWhenLater(s, f) == \A g \in Instants : jobs[s][g] > 0 => g < f

=============================================================================
