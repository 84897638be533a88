--------------------------- MODULE AwaCronVariants ---------------------------
(***************************************************************************)
(* AwaCron, broken on purpose, one thing at a time.                        *)
(*                                                                         *)
(* A variant replaces one operator or action of the protocol, or two where *)
(* one is covered by another, through `Operator <- Variant` in its cfg.    *)
(* Each cfg names the one property that has to catch it; a variant that    *)
(* nobody catches would mean that the properties say less than we think.   *)
(* It is then named Equivalent, and spec/README.md says why it is.         *)
(*                                                                         *)
(* They follow the order of AwaCron: the evaluator, the guards, what is    *)
(* written, the steps of the system, those of the environment.             *)
(***************************************************************************)
EXTENDS AwaCron

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

DueRegardlessOfLast(row, t) == {f \in FiresOf[row.def] : f > row.anchor /\ f <= t}

DueBeforeClock(row, t) ==
    {f \in FiresOf[row.def] : f > row.anchor /\ After(f, row.last) /\ f < t}

DueFromAnchorOn(row, t) ==
    {f \in FiresOf[row.def] : f >= row.anchor /\ After(f, row.last) /\ f <= t}

OldestOnly(due) == <<First(Ascending(due))>>

ChosenToCoalesce(s, row, t) ==
    LET due == Due(row, t) IN IF due = {} THEN <<>> ELSE Coalesced(due)

ChosenToCatchUp(s, row, t) ==
    LET due == Due(row, t) IN IF due = {} THEN <<>> ELSE CaughtUp(due)

NothingOfPolls(s) ==
    IF s = "poll" \/ rows[s] = None \/ rows[s].paused THEN {None}
    ELSE IF Chosen(s, rows[s], now) = <<>> THEN {None}
    ELSE {FrozenOf(rows[s], Chosen(s, rows[s], now))}

FrozenWithoutLast(row, fires) ==
    [def |-> row.def, anchor |-> row.anchor, expected |-> None, fires |-> fires]

----------------------------------------------------------------------------
(* Variants of the guards.                                                 *)

Always(row, frozen) == TRUE

EqualAndNotNone(row, frozen) == row.last # None /\ row.last = frozen.expected
SameDefinition(row, frozen) == row.def = frozen.def
SameAnchor(row, frozen) == row.anchor = frozen.anchor
AdvancesOrStays(row, frozen) == row.last = None \/ First(frozen.fires) >= row.last
NewestAdvances(row, frozen) == After(Last(frozen.fires), row.last)
FromAnchorOn(row, frozen) == First(frozen.fires) >= row.anchor
NewestAfterAnchor(row, frozen) == Last(frozen.fires) > row.anchor
OldestAlreadyDue(row, frozen) == First(frozen.fires) <= now
DueForAWhile(row, frozen) == Last(frozen.fires) < now

Holds(i, s) == rows[s] # None /\ snapshot[i][s] # None /\ Passes(rows[s], snapshot[i][s])

WinnersOfAWholePass(i) ==
    IF \A s \in Schedules : snapshot[i][s] # None => Holds(i, s)
    THEN {s \in Schedules : Holds(i, s)} ELSE {}

OneWinner(i) ==
    LET won == {s \in Schedules : Holds(i, s)}
    IN  IF won = {} THEN {} ELSE {CHOOSE s \in won : TRUE}

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
(* Variants of what is marked and inserted.                                *)

MarkedAtOldest(row, fires) == IF fires = <<>> THEN row ELSE [row EXCEPT !.last = First(fires)]
MarkedAtClock(row, fires) == IF fires = <<>> THEN row ELSE [row EXCEPT !.last = now]
MarkedAndAnchored(row, fires) ==
    IF fires = <<>> THEN row ELSE [row EXCEPT !.last = Last(fires), !.anchor = Last(fires)]

WithTwoJobs(count, fires) ==
    [f \in Instants |-> IF f \in Range(fires) THEN count[f] + 2 ELSE count[f]]
WithNewestJob(count, fires) ==
    [f \in Instants |-> IF fires # <<>> /\ f = Last(fires) THEN count[f] + 1 ELSE count[f]]

MarkEveryRow(i) ==
    /\ up[i]
    /\ snapshot[i] # None
    /\ Winners(i) # {}
    /\ LET fires == snapshot[i][CHOOSE s \in Winners(i) : TRUE].fires
       IN  rows' = [s \in Schedules |-> IF rows[s] = None THEN None ELSE Marked(rows[s], fires)]
    /\ jobs' = [s \in Schedules |->
                  IF s \in Winners(i) THEN WithJobs(jobs[s], snapshot[i][s].fires) ELSE jobs[s]]
    /\ snapshot' = [snapshot EXCEPT ![i] = None]
    /\ UNCHANGED <<now, triggered, floor, lock, up, believes>>

InsertForLosers(i) ==
    /\ up[i]
    /\ snapshot[i] # None
    /\ Winners(i) # {}
    /\ MarkRows(i, Winners(i))
    /\ InsertJobs(i, {s \in Schedules : snapshot[i][s] # None})
    /\ snapshot' = [snapshot EXCEPT ![i] = None]
    /\ UNCHANGED <<now, triggered, floor, lock, up, believes>>

EnqueueAndKeepSnapshot(i) ==
    /\ up[i]
    /\ snapshot[i] # None
    /\ Winners(i) # {}
    /\ MarkRows(i, Winners(i))
    /\ InsertJobs(i, Winners(i))
    /\ UNCHANGED <<now, triggered, floor, lock, up, believes, snapshot>>

EnqueueThoughDown(i) ==
    /\ snapshot[i] # None
    /\ Winners(i) # {}
    /\ MarkRows(i, Winners(i))
    /\ InsertJobs(i, Winners(i))
    /\ snapshot' = [snapshot EXCEPT ![i] = None]
    /\ UNCHANGED <<now, triggered, floor, lock, up, believes>>

LoseAndMark(i) ==
    /\ up[i]
    /\ snapshot[i] # None
    /\ Winners(i) = {}
    /\ rows' = [s \in Schedules |->
                  IF rows[s] # None /\ snapshot[i][s] # None
                  THEN Marked(rows[s], snapshot[i][s].fires) ELSE rows[s]]
    /\ snapshot' = [snapshot EXCEPT ![i] = None]
    /\ UNCHANGED <<now, jobs, triggered, floor, lock, up, believes>>

LoseAndStepDown(i) ==
    /\ up[i]
    /\ snapshot[i] # None
    /\ Winners(i) = {}
    /\ StepDown(i)
    /\ UNCHANGED <<now, rows, jobs, triggered, floor, lock, up>>

GiveUp(i) ==
    /\ up[i]
    /\ snapshot[i] # None
    /\ snapshot' = [snapshot EXCEPT ![i] = None]
    /\ UNCHANGED <<now, rows, jobs, triggered, floor, lock, up, believes>>

----------------------------------------------------------------------------
(* Variants of leadership and of reading.                                  *)

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

AcquireFromAnother(i) ==
    /\ up[i]
    /\ ~believes[i]
    /\ lock' = i
    /\ believes' = [believes EXCEPT ![i] = TRUE]
    /\ UNCHANGED <<now, rows, jobs, triggered, floor, up, snapshot>>

AcquireAgain(i) ==
    /\ up[i]
    /\ lock = None
    /\ lock' = i
    /\ believes' = [believes EXCEPT ![i] = TRUE]
    /\ UNCHANGED <<now, rows, jobs, triggered, floor, up, snapshot>>

AcquireThoughDown(i) ==
    /\ ~believes[i]
    /\ lock = None
    /\ lock' = i
    /\ believes' = [believes EXCEPT ![i] = TRUE]
    /\ UNCHANGED <<now, rows, jobs, triggered, floor, up, snapshot>>

AcquireUnnoticed(i) ==
    /\ up[i]
    /\ ~believes[i]
    /\ lock = None
    /\ lock' = i
    /\ UNCHANGED <<now, rows, jobs, triggered, floor, up, believes, snapshot>>

StepDownThoughHolding(i) ==
    /\ up[i]
    /\ believes[i]
    /\ StepDown(i)
    /\ UNCHANGED <<now, rows, jobs, triggered, floor, lock, up>>

PingAndUnlock(i) ==
    /\ up[i]
    /\ believes[i]
    /\ lock # i
    /\ StepDown(i)
    /\ lock' = None
    /\ UNCHANGED <<now, rows, jobs, triggered, floor, up>>

StepDownStillBelieving(i) ==
    /\ UNCHANGED believes
    /\ snapshot' = [snapshot EXCEPT ![i] = None]

StepDownStillReading(i) ==
    /\ believes' = [believes EXCEPT ![i] = FALSE]
    /\ UNCHANGED snapshot

ReadWithoutBelief(i) ==
    /\ up[i]
    /\ snapshot[i] = None
    /\ \E s \in Schedules : Evaluations(s) # {None}
    /\ snapshot' = [snapshot EXCEPT ![i] =
                      [s \in Schedules |-> CHOOSE read \in Evaluations(s) : TRUE]]
    /\ UNCHANGED <<now, rows, jobs, triggered, floor, lock, up, believes>>

LoseAndKeepLock(i) ==
    /\ believes[i]
    /\ lock = i
    /\ StepDown(i)
    /\ UNCHANGED <<now, rows, jobs, triggered, floor, lock, up>>

LoseAnothersLock(i) ==
    /\ believes[i]
    /\ lock' = None
    /\ StepDown(i)
    /\ UNCHANGED <<now, rows, jobs, triggered, floor, up>>

LoseStillBelieving(i) ==
    /\ believes[i]
    /\ lock = i
    /\ lock' = None
    /\ UNCHANGED <<now, rows, jobs, triggered, floor, up, believes, snapshot>>

CrashFreesAnyLock(i) ==
    /\ up[i]
    /\ up' = [up EXCEPT ![i] = FALSE]
    /\ StepDown(i)
    /\ lock' = None
    /\ UNCHANGED <<now, rows, jobs, triggered, floor>>

RecoverBelieving(i) ==
    /\ ~up[i]
    /\ up' = [up EXCEPT ![i] = TRUE]
    /\ believes' = [believes EXCEPT ![i] = TRUE]
    /\ UNCHANGED <<now, rows, jobs, triggered, floor, lock, snapshot>>

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

AsItWas(row) == row
PausedAndAnchored(row) == [row EXCEPT !.paused = TRUE, !.anchor = now]
ResumedWithoutLast(row) == [row EXCEPT !.paused = FALSE, !.last = None]
ResumedAndAnchored(row) == [row EXCEPT !.paused = FALSE, !.anchor = now]

PauseEverything(s) ==
    /\ rows[s] # None
    /\ ~rows[s].paused
    /\ rows' = [r \in Schedules |-> IF rows[r] = None THEN None ELSE PausedRow(rows[r])]
    /\ UNCHANGED <<now, jobs, triggered, floor, lock, up, believes, snapshot>>

ResumeEverything(s) ==
    /\ rows[s] # None
    /\ rows[s].paused
    /\ rows' = [r \in Schedules |-> IF rows[r] = None THEN None ELSE ResumedRow(rows[r])]
    /\ UNCHANGED <<now, jobs, triggered, floor, lock, up, believes, snapshot>>

ResumeAndEnqueue(s) ==
    /\ rows[s] # None
    /\ rows[s].paused
    /\ LET fires == Chosen(s, rows[s], now)
       IN  /\ rows' = [rows EXCEPT ![s] = ResumedRow(Marked(@, fires))]
           /\ jobs' = [jobs EXCEPT ![s] = WithJobs(@, fires)]
    /\ UNCHANGED <<now, triggered, floor, lock, up, believes, snapshot>>

TriggerAFire(s) ==
    /\ rows[s] # None
    /\ triggered[s] < MaxTriggers
    /\ triggered' = [triggered EXCEPT ![s] = @ + 1]
    /\ jobs' = [jobs EXCEPT ![s][now] = @ + 1]
    /\ UNCHANGED <<now, rows, floor, lock, up, believes, snapshot>>

TriggerAnyName(s) ==
    /\ triggered[s] < MaxTriggers
    /\ triggered' = [triggered EXCEPT ![s] = @ + 1]
    /\ UNCHANGED <<now, rows, jobs, floor, lock, up, believes, snapshot>>

TriggerInVain(s) ==
    /\ rows[s] # None
    /\ triggered[s] < MaxTriggers
    /\ UNCHANGED vars

AnchorAtFloor(s) == floor[s]
AnchorAtClockOnly(s) == now

InsertMarked(s, d) ==
    [def |-> d, last |-> now, anchor |-> AnchorOnInsert(s), paused |-> FALSE]
InsertAnother(s, d) ==
    [def |-> CHOOSE other \in Definitions : other # d, last |-> None,
     anchor |-> AnchorOnInsert(s), paused |-> FALSE]

EditAnchorOnly(s, row, d) ==
    [Marked(row, SettledFires(s, row)) EXCEPT !.anchor = AnchorOnEdit(row)]
EditUnmarked(s, row, d) == [row EXCEPT !.def = d, !.anchor = AnchorOnEdit(row)]

SyncSettlingTheNew(s, d) ==
    /\ IF rows[s] = None
       THEN /\ rows' = Upserted(s, InsertedRow(s, d))
            /\ jobs' = jobs
       ELSE /\ rows[s].def # d
            /\ LET new == [rows[s] EXCEPT !.def = d]
               IN  /\ rows' = Upserted(s, EditedRow(s, new, d))
                   /\ jobs' = [jobs EXCEPT ![s] = WithJobs(@, SettledFires(s, new))]
    /\ UNCHANGED <<now, triggered, floor, lock, up, believes, snapshot>>

SyncWithoutJobs(s, d) ==
    /\ IF rows[s] = None
       THEN rows' = Upserted(s, InsertedRow(s, d))
       ELSE /\ rows[s].def # d
            /\ rows' = Upserted(s, EditedRow(s, rows[s], d))
    /\ UNCHANGED <<now, jobs, triggered, floor, lock, up, believes, snapshot>>

SyncAnyway(s, d) ==
    /\ IF rows[s] = None
       THEN /\ rows' = Upserted(s, InsertedRow(s, d))
            /\ jobs' = jobs
       ELSE /\ rows' = Upserted(s, EditedRow(s, rows[s], d))
            /\ jobs' = [jobs EXCEPT ![s] = WithJobs(@, SettledFires(s, rows[s]))]
    /\ UNCHANGED <<now, triggered, floor, lock, up, believes, snapshot>>

SyncResumesUnchanged(s, d) ==
    /\ IF rows[s] = None
       THEN /\ rows' = Upserted(s, InsertedRow(s, d))
            /\ jobs' = jobs
       ELSE IF rows[s].def = d
       THEN /\ rows' = Upserted(s, ResumedRow(rows[s]))
            /\ jobs' = jobs
       ELSE /\ rows' = Upserted(s, EditedRow(s, rows[s], d))
            /\ jobs' = [jobs EXCEPT ![s] = WithJobs(@, SettledFires(s, rows[s]))]
    /\ UNCHANGED <<now, triggered, floor, lock, up, believes, snapshot>>

SyncForgettingFloor(s, d) ==
    /\ IF rows[s] = None
       THEN /\ rows' = Upserted(s, InsertedRow(s, d))
            /\ jobs' = jobs
            /\ floor' = [floor EXCEPT ![s] = 0]
       ELSE /\ rows[s].def # d
            /\ rows' = Upserted(s, EditedRow(s, rows[s], d))
            /\ jobs' = [jobs EXCEPT ![s] = WithJobs(@, SettledFires(s, rows[s]))]
            /\ floor' = floor
    /\ UNCHANGED <<now, triggered, lock, up, believes, snapshot>>

FloorOfThisRow(s) == IF rows[s].last = None THEN 0 ELSE rows[s].last
FloorNotCompared(s) == IF rows[s].last = None THEN floor[s] ELSE rows[s].last

RemoveEverything(s) ==
    /\ rows[s] # None
    /\ rows' = [r \in Schedules |-> None]
    /\ floor' = [r \in Schedules |-> IF rows[r] = None THEN floor[r] ELSE FloorOnRemove(r)]
    /\ UNCHANGED <<now, jobs, triggered, lock, up, believes, snapshot>>

RemoveInVain(s) ==
    /\ rows[s] # None
    /\ floor' = [floor EXCEPT ![s] = FloorOnRemove(s)]
    /\ UNCHANGED <<now, rows, jobs, triggered, lock, up, believes, snapshot>>

RemoveAndSettle(s) ==
    /\ rows[s] # None
    /\ rows' = [rows EXCEPT ![s] = None]
    /\ floor' = [floor EXCEPT ![s] = Larger(FloorOnRemove(s), now)]
    /\ jobs' = [jobs EXCEPT ![s] = WithJobs(@, SettledFires(s, rows[s]))]
    /\ UNCHANGED <<now, triggered, lock, up, believes, snapshot>>

=============================================================================
