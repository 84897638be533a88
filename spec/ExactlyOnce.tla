---------------------------- MODULE ExactlyOnce ----------------------------
(***************************************************************************)
(* What the whole protocol amounts to, on one page.                        *)
(*                                                                         *)
(* Leave out leaders, locks, crashes, stale reads, pauses, edits, removals *)
(* and policies: what is left to see is jobs.  For each schedule, instants *)
(* become jobs.  Whatever happens behind it, each instant does so at most  *)
(* once, only after all that did so before it, and not before its time; no *)
(* job is ever taken back.  A job made by hand is beside all that.         *)
(*                                                                         *)
(* AwaCron implements this page (RefinesExactlyOnce): each of its steps,   *)
(* with a faulty evaluator and a slipping clock as well, is here a step or *)
(* nothing.  Whoever reads only this page knows what cannot happen.        *)
(* What does happen is another matter: that a due instant becomes a job at *)
(* all, which of several missed ones do, and which instants a schedule has *)
(* in the first place, is said in AwaCron.                                 *)
(***************************************************************************)
EXTENDS Integers

CONSTANTS
    Schedules,  \* whatever has fires
    Instants    \* a set of integers

ASSUME InstantsAreOrdered == Instants \subseteq Int

VARIABLES
    now,     \* the clock; it may step to anywhere
    jobs,    \* per schedule and instant, how many jobs that instant became
    byHand   \* per schedule, how many jobs somebody made by hand

vars == <<now, jobs, byHand>>

Init ==
    /\ now \in Instants
    /\ jobs = [s \in Schedules |-> [f \in Instants |-> 0]]
    /\ byHand = [s \in Schedules |-> 0]

(* An instant may become a job of s: it is due, and later than all before. *)
Fresh(s, f) == f <= now /\ \A g \in Instants : jobs[s][g] > 0 => g < f

(* Some fresh instants, of one schedule or of several, become one job each.*)
Enqueue ==
    /\ \E fires \in [Schedules -> SUBSET Instants] :
          /\ \A s \in Schedules : \A f \in fires[s] : Fresh(s, f)
          /\ jobs' = [s \in Schedules |-> [f \in Instants |->
                         IF f \in fires[s] THEN jobs[s][f] + 1 ELSE jobs[s][f]]]
    /\ UNCHANGED <<now, byHand>>

(* Somebody makes one job by hand. *)
ByHand ==
    /\ \E s \in Schedules : byHand' = [byHand EXCEPT ![s] = @ + 1]
    /\ UNCHANGED <<now, jobs>>

Clock == now' \in Instants /\ UNCHANGED <<jobs, byHand>>

Next == Clock \/ ByHand \/ Enqueue

Spec == Init /\ [][Next]_vars

----------------------------------------------------------------------------
(* What follows.  TLC is asked all the same (MCExactlyOnce).               *)

AtMostOnce == \A s \in Schedules : \A f \in Instants : jobs[s][f] \in {0, 1}

InOrderAndInTime ==
    [][\A s \in Schedules : \A f \in Instants : jobs'[s][f] # jobs[s][f] =>
          /\ jobs'[s][f] > jobs[s][f]
          /\ f <= now
          /\ \A g \in Instants : jobs[s][g] > 0 => g < f]_vars

=============================================================================
