---------------------------- MODULE AwaRetention ----------------------------
(***************************************************************************)
(* What may be deleted of the log.                                         *)
(*                                                                         *)
(* Nothing that AwaCron does reads a job or an event, with one exception:  *)
(* a schedule that comes back must not fire again for what a removed row   *)
(* of its name had enqueued, and only the events of the removals still     *)
(* tell how far that was.  AwaCron has it as `floor`.  Here the events are *)
(* there, a sync asks them, and retention deletes some.                    *)
(***************************************************************************)
EXTENDS AwaCron

VARIABLES
    removals,  \* per schedule, the last fires that events of its removals tell; 0 is none
    latest     \* per schedule, what the latest of these tells

logVars == <<removals, latest>>
allVars == <<vars, logVars>>

Highest(told) == Max(told \cup {0})

(* In place of AwaCron's AnchorOnInsert: what the sync really asks. *)
AnchorByLog(s) == Larger(now, Highest(removals[s]))

LogInit ==
    /\ Init
    /\ removals = [s \in Schedules |-> {}]
    /\ latest = [s \in Schedules |-> 0]

Told(s) == IF rows[s].last = None THEN 0 ELSE rows[s].last

LogStep ==
    /\ Next
    /\ removals' = [s \in Schedules |->
          IF Removed(s) THEN removals[s] \cup {Told(s)} ELSE removals[s]]
    /\ latest' = [s \in Schedules |-> IF Removed(s) THEN Told(s) ELSE latest[s]]

(* Of a name's removals the one that tells most is kept, whenever it was.  *)
FloorKept(s, kept) == Highest(kept) = Highest(removals[s])

(* awa_cron.actions.purge_events.  All other events may go, and jobs that  *)
(* are finished: no step reads them.                                       *)
PurgeEvents(s) ==
    \E kept \in SUBSET removals[s] :
        /\ kept # removals[s]
        /\ FloorKept(s, kept)
        /\ removals' = [removals EXCEPT ![s] = kept]
        /\ UNCHANGED <<vars, latest>>

LogNext == LogStep \/ \E s \in Schedules : PurgeEvents(s)

LogSpec == LogInit /\ [][LogNext]_allVars

----------------------------------------------------------------------------
(* Properties, beside AwaCron's own: NoDuplicateFire, InsertKeepsFloor.    *)

FloorSurvives == \A s \in Schedules : Highest(removals[s]) = floor[s]

(* Retention touches nothing that fires.                                   *)
PurgeTouchesOnlyLog ==
    [][(\E s \in Schedules : PurgeEvents(s)) => UNCHANGED vars]_allVars

=============================================================================
