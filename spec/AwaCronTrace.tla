---------------------------- MODULE AwaCronTrace ----------------------------
(***************************************************************************)
(* Is what happened a behaviour of AwaCron?                                *)
(*                                                                         *)
(* The events of one schedule, in the order of its row lock, are a trace:  *)
(* each must be a step of the action that it names, with the clock, the    *)
(* fires and the last fire that it tells.  Between them steps may lie that *)
(* leave no event: the clock moves, a leader reads.                        *)
(*                                                                         *)
(* Module TraceData is written by scripts/assurance/trace.py.  It extends  *)
(* AwaCron and holds the traces of a run, instants as numbers in their     *)
(* order, and per definition the instants at which it fires.               *)
(*                                                                         *)
(* Success is not the absence of an error.  A trace is accepted if a state *)
(* is reached in which all of it has been consumed; Reached prints how far *)
(* each trace gets, and where a rejected one ends, its next event is no    *)
(* step that AwaCron could take.  Every run has a trace that must be       *)
(* accepted and one that must be rejected.                                 *)
(***************************************************************************)
EXTENDS TraceData, TLC

VARIABLES
    trace,  \* which of the traces this behaviour follows
    at      \* the event that comes next

traceVars == <<vars, trace, at>>

(* One instance is enough.  Whatever the others read, at most one of them  *)
(* writes, and it could have been this one; who reads and loses leaves no  *)
(* event, and neither does who leads.                                      *)
Leader == CHOOSE i \in Instances : TRUE

Log == Traces[trace].events
Event == Log[at]
Subject == Traces[trace].schedule

TraceInit ==
    /\ trace \in DOMAIN Traces
    /\ at = 1
    /\ now = Traces[trace].now
    /\ rows = [s \in Schedules |-> IF s = Subject THEN Traces[trace].row ELSE None]
    /\ floor = [s \in Schedules |-> IF s = Subject THEN Traces[trace].floor ELSE 0]
    /\ jobs = [s \in Schedules |-> [f \in Instants |-> 0]]
    /\ triggered = [s \in Schedules |-> 0]
    /\ lock = Leader
    /\ up = [i \in Instances |-> TRUE]
    /\ believes = [i \in Instances |-> TRUE]
    /\ snapshot = [i \in Instances |-> None]

----------------------------------------------------------------------------
(* Events.                                                                 *)

IsEvent(action) ==
    /\ at <= Len(Log)
    /\ Event.action = action
    /\ at' = at + 1
    /\ UNCHANGED trace

AtItsClock == now = Event.clock

(* Jobs are made for the fires that the event tells, one for each.         *)
MadeJobs ==
    /\ Event.jobs = Len(Event.fires)
    /\ jobs'[Subject] = WithJobs(jobs[Subject], Event.fires)

RowAfter(def, anchor) ==
    /\ rows'[Subject].def = def
    /\ rows'[Subject].anchor = anchor
    /\ rows'[Subject].last = Event.last

KeepsRest ==
    /\ rows'[Subject].last = Event.last
    /\ MadeJobs

IsInserted ==
    /\ IsEvent("inserted")
    /\ AtItsClock
    /\ rows[Subject] = None
    /\ Sync(Subject, Event.def)
    /\ RowAfter(Event.def, Event.anchor)
    /\ MadeJobs

IsRedefined ==
    /\ IsEvent("redefined")
    /\ AtItsClock
    /\ rows[Subject] # None
    /\ rows[Subject].def = Event.before
    /\ Sync(Subject, Event.def)
    /\ RowAfter(Event.def, Event.anchor)
    /\ MadeJobs

(* A sync that changes nothing the protocol knows of: kind, args, policy.  *)
(* A trace ends where its policy does.                                     *)
IsUpdated ==
    /\ IsEvent("updated")
    /\ AtItsClock
    /\ rows[Subject] # None
    /\ rows[Subject].def = Event.before
    /\ UNCHANGED vars
    /\ RowAfter(Event.def, Event.anchor)
    /\ MadeJobs

IsAtomicEnqueue ==
    /\ IsEvent("atomic_enqueue")
    /\ AtItsClock
    /\ snapshot[Leader] # None
    /\ snapshot[Leader][Subject] # None
    /\ snapshot[Leader][Subject].fires = Event.fires
    /\ snapshot[Leader][Subject].expected = Event.expected
    /\ AtomicEnqueue(Leader)
    /\ KeepsRest

IsPause ==
    /\ IsEvent("pause")
    /\ AtItsClock
    /\ Pause(Subject)
    /\ KeepsRest

IsResume ==
    /\ IsEvent("resume")
    /\ AtItsClock
    /\ Resume(Subject)
    /\ KeepsRest

(* A trigger locks nothing: what it tells of the row may be older.         *)
IsTrigger ==
    /\ IsEvent("trigger")
    /\ AtItsClock
    /\ Event.jobs = 1
    /\ Event.fires = <<>>
    /\ Trigger(Subject)

IsRemove ==
    /\ IsEvent("remove")
    /\ AtItsClock
    /\ Remove(Subject)
    /\ rows[Subject].def = Event.before
    /\ rows[Subject].last = Event.last
    /\ MadeJobs

(* At the end of a trace stands the row as it is.                          *)
IsRow ==
    /\ IsEvent("row")
    /\ rows[Subject] = Event.row
    /\ UNCHANGED vars

----------------------------------------------------------------------------
(* Steps that leave no event.                                              *)

Coming == {k \in at..Len(Log) : Log[k].action = "atomic_enqueue"}
Min(S) == CHOOSE m \in S : \A other \in S : m <= other

(* The clocks at which the next enqueue may have been read: the one that   *)
(* its event tells, or any where it does not.                              *)
ReadClocks ==
    IF at > Len(Log) \/ Coming = {} THEN {}
    ELSE LET read == Log[Min(Coming)].read IN IF read = None THEN Instants ELSE {read}

(* The clock goes where it is needed next.                                 *)
Tick ==
    /\ at <= Len(Log)
    /\ now' \in ({Event.clock} \cup ReadClocks) \ {now}
    /\ AdvanceClock
    /\ UNCHANGED <<trace, at>>

Read ==
    /\ now \in ReadClocks
    /\ ReadCronState(Leader)
    /\ UNCHANGED <<trace, at>>

TraceNext ==
    \/ IsInserted
    \/ IsRedefined
    \/ IsUpdated
    \/ IsAtomicEnqueue
    \/ IsPause
    \/ IsResume
    \/ IsTrigger
    \/ IsRemove
    \/ IsRow
    \/ Tick
    \/ Read

TraceSpec == TraceInit /\ [][TraceNext]_traceVars

(* Always true; it prints, once a state, how far the trace has come.       *)
Reached == PrintT(<<"reached", trace, at>>)


----------------------------------------------------------------------------
(* In the place of two operators of AwaCron that enumerate too much for    *)
(* many instants: Ascending tries all functions, this finds the same one;  *)
(* AnyFires is for evaluators that are wrong, and TLC computes it first.   *)
InOrder(S) ==
    [k \in 1..Cardinality(S) |->
        CHOOSE f \in S : Cardinality({g \in S : g < f}) = k - 1]

NoFires == {}

=============================================================================
