----------------------------- MODULE MCAwaQueue -----------------------------
(***************************************************************************)
(* What a model checker needs beside AwaQueue: what schedules offer,       *)
(* variants that are broken on purpose, and states that must be reachable. *)
(*                                                                         *)
(* A variant replaces an operator of the protocol through `Operator <-     *)
(* Variant` in its cfg.  Each cfg names the one property that has to catch *)
(* it; a variant that nobody catches would mean that the property says     *)
(* less than we think.                                                     *)
(*                                                                         *)
(* Some configurations leave out actions of the environment by `Never`, so *)
(* that others have more room.                                             *)
(***************************************************************************)
EXTENDS AwaQueue, TLC

----------------------------------------------------------------------------
(* What code may give the schedules.                                       *)

MCOffersOne == [s \in Schedules |-> {[queue |-> "email", max_attempts |-> 1]}]
MCOffersTwo == [s \in Schedules |-> {[queue |-> "email", max_attempts |-> 2]}]

(* Each schedule has a queue of its own. *)
MCOffersApart ==
    [s \in Schedules |->
        {[queue |-> IF s = "digest" THEN "email" ELSE "reports", max_attempts |-> 1]}]

(* A deployment may change both. *)
MCOffersEdited ==
    [s \in Schedules |->
        {[queue |-> "email", max_attempts |-> 1], [queue |-> "reports", max_attempts |-> 2]}]

(* Workers are interchangeable; for safety only. *)
MCSymmetry == Permutations(Workers)

----------------------------------------------------------------------------
(* Actions left out, guards left out.                                      *)

Never(x) == FALSE
NeverSettles(w, claim) == FALSE
Always(job, w, claim) == TRUE
AlwaysRenews(w, job, claim) == TRUE
AnyJob(job) == TRUE
Unchanged(row) == row

RowOf(job) == IF job.cron_name = None THEN None ELSE rows[job.cron_name]

----------------------------------------------------------------------------
(* Variants of the pauses.                                                 *)

PausedWithJobs(s) ==
    /\ rows[s] # None
    /\ ~rows[s].paused
    /\ rows' = [rows EXCEPT ![s] = PausedRow(@)]
    /\ jobs' = [j \in DOMAIN jobs |->
                  IF Cancels(jobs[j], s, FALSE) THEN CancelledJob(jobs[j]) ELSE jobs[j]]
    /\ UNCHANGED <<queue_paused, worker, holds>>

PauseMarks(row) == [row EXCEPT !.paused = TRUE, !.last = @ + 1]

ScheduleUnpaused(job) ==
    RowOf(job) # None => ~RowOf(job).paused

QueueAndScheduleUnpaused(job) == ~queue_paused[job.queue] /\ ScheduleUnpaused(job)

(* The pause that is asked for belongs to the queue the schedule has now.  *)
QueueOfScheduleUnpaused(job) ==
    ~queue_paused[IF RowOf(job) = None THEN job.queue ELSE RowOf(job).queue]

NoRetryWhilePaused(job) ==
    IF job.attempt < job.max_attempts /\ ScheduleUnpaused(job) THEN "retryable" ELSE "failed"

EnqueueUnlessQueuePaused(s) ==
    /\ rows[s] # None
    /\ ~rows[s].paused
    /\ ~queue_paused[rows[s].queue]
    /\ Len(jobs) < MaxJobs
    /\ rows' = [rows EXCEPT ![s] = MarkedRow(@)]
    /\ jobs' = Append(jobs, NewJob(s))
    /\ UNCHANGED <<queue_paused, worker, holds>>

EnqueueThoughPaused(s) ==
    /\ rows[s] # None
    /\ Len(jobs) < MaxJobs
    /\ rows' = [rows EXCEPT ![s] = MarkedRow(@)]
    /\ jobs' = Append(jobs, NewJob(s))
    /\ UNCHANGED <<queue_paused, worker, holds>>

EnqueueDropsIntoPaused(s) ==
    /\ rows[s] # None
    /\ ~rows[s].paused
    /\ Len(jobs) < MaxJobs
    /\ rows' = [rows EXCEPT ![s] = MarkedRow(@)]
    /\ jobs' = IF queue_paused[rows[s].queue] THEN jobs ELSE Append(jobs, NewJob(s))
    /\ rows'[s].last <= MaxJobs
    /\ UNCHANGED <<queue_paused, worker, holds>>

EnqueueHoldsLast(row) == IF queue_paused[row.queue] THEN row ELSE [row EXCEPT !.last = @ + 1]

FinishUnlessPaused(w, claim) ==
    /\ worker[w] = "up"
    /\ claim \in holds[w]
    /\ Owns(w, claim)
    /\ ~queue_paused[jobs[claim.job].queue]
    /\ jobs' = [jobs EXCEPT ![claim.job] = FinishedJob(@)]
    /\ Forgets(w, claim)
    /\ UNCHANGED <<rows, queue_paused, worker>>

RowsOfQueue(q, paused) ==
    [s \in Schedules |->
        IF rows[s] # None /\ rows[s].queue = q THEN [rows[s] EXCEPT !.paused = paused]
        ELSE rows[s]]

PauseQueueAndSchedules(q) ==
    /\ ~queue_paused[q]
    /\ queue_paused' = [queue_paused EXCEPT ![q] = TRUE]
    /\ rows' = RowsOfQueue(q, TRUE)
    /\ UNCHANGED <<jobs, worker, holds>>

ResumeQueueAndSchedules(q) ==
    /\ queue_paused[q]
    /\ queue_paused' = [queue_paused EXCEPT ![q] = FALSE]
    /\ rows' = RowsOfQueue(q, FALSE)
    /\ UNCHANGED <<jobs, worker, holds>>

ResumeEveryQueue(q) ==
    /\ queue_paused[q]
    /\ queue_paused' = [r \in Queues |-> FALSE]
    /\ UNCHANGED <<rows, jobs, worker, holds>>

ResumeQueueInVain(q) == queue_paused[q] /\ UNCHANGED vars

ResumeWithQueue(s) ==
    /\ rows[s] # None
    /\ rows[s].paused
    /\ rows' = [rows EXCEPT ![s] = ResumedRow(@)]
    /\ queue_paused' = [queue_paused EXCEPT ![rows[s].queue] = FALSE]
    /\ UNCHANGED <<jobs, worker, holds>>

----------------------------------------------------------------------------
(* Variants of what operators and deployments do.                          *)

TriggerUnlessPaused(s) ==
    /\ rows[s] # None
    /\ ~rows[s].paused
    /\ Len(jobs) < MaxJobs
    /\ jobs' = Append(jobs, NewJob(s))
    /\ UNCHANGED <<rows, queue_paused, worker, holds>>

TriggerUnlessQueuePaused(s) ==
    /\ rows[s] # None
    /\ ~queue_paused[rows[s].queue]
    /\ Len(jobs) < MaxJobs
    /\ jobs' = Append(jobs, NewJob(s))
    /\ UNCHANGED <<rows, queue_paused, worker, holds>>

TriggerMarks(s) ==
    /\ rows[s] # None
    /\ Len(jobs) < MaxJobs
    /\ rows' = [rows EXCEPT ![s] = MarkedRow(@)]
    /\ jobs' = Append(jobs, NewJob(s))
    /\ UNCHANGED <<queue_paused, worker, holds>>

TriggerInVain(s) == rows[s] # None /\ Len(jobs) < MaxJobs /\ UNCHANGED vars

RemoveWithJobs(s) ==
    /\ rows[s] # None
    /\ rows' = [rows EXCEPT ![s] = None]
    /\ jobs' = [j \in DOMAIN jobs |->
                  IF Cancels(jobs[j], s, FALSE) THEN CancelledJob(jobs[j]) ELSE jobs[j]]
    /\ UNCHANGED <<queue_paused, worker, holds>>

InsertPaused(o) ==
    [queue |-> o.queue, max_attempts |-> o.max_attempts, last |-> 0, paused |-> TRUE]
EditResumes(row, o) ==
    [row EXCEPT !.queue = o.queue, !.max_attempts = o.max_attempts, !.paused = FALSE]
EditForgetsLast(row, o) ==
    [row EXCEPT !.queue = o.queue, !.max_attempts = o.max_attempts, !.last = 0]

SyncMovesJobs(s, o) ==
    /\ IF rows[s] = None
       THEN rows' = [rows EXCEPT ![s] = InsertedRow(o)]
       ELSE rows' = [rows EXCEPT ![s] = EditedRow(@, o)]
    /\ rows' # rows
    /\ jobs' = [j \in DOMAIN jobs |->
                  IF jobs[j].cron_name = s /\ StillWaiting(jobs[j])
                  THEN [jobs[j] EXCEPT !.queue = o.queue] ELSE jobs[j]]
    /\ UNCHANGED <<queue_paused, worker, holds>>

CancelAll(job, s, running) ==
    job.state \in Waiting \/ (running /\ job.state = "running")
CancelByQueue(job, s, running) ==
    /\ rows[s] # None
    /\ job.queue = rows[s].queue
    /\ job.state \in Waiting \/ (running /\ job.state = "running")
CancelUnasked(job, s, running) ==
    job.cron_name = s /\ job.state \in Waiting \cup {"running"}
CancelOnlyAvailable(job, s, running) ==
    /\ job.cron_name = s
    /\ job.state = "available" \/ (running /\ job.state = "running")
CancelFinal(job, s, running) ==
    /\ job.cron_name = s
    /\ job.state \in Waiting \cup {"failed"} \/ (running /\ job.state = "running")
CancelOfRegistered(job, s, running) ==
    /\ rows[s] # None
    /\ job.cron_name = s
    /\ job.state \in Waiting \/ (running /\ job.state = "running")

RevivedFromZero(job) == [job EXCEPT !.state = "available", !.attempt = 0]
RevivedWithoutBudget(job) == [job EXCEPT !.state = "available"]

RetryAnythingFinal(j) ==
    /\ j \in DOMAIN jobs
    /\ jobs[j].state \in Final
    /\ jobs[j].attempt + FreshAttempts <= AttemptLimit
    /\ jobs' = [jobs EXCEPT ![j] = RevivedJob(@)]
    /\ UNCHANGED <<rows, queue_paused, worker, holds>>

PurgeAnythingOld(j) ==
    /\ j \in DOMAIN jobs
    /\ jobs[j].state \in Waiting \cup {"completed", "cancelled"}
    /\ jobs' = [jobs EXCEPT ![j] = PurgedJob(@)]
    /\ UNCHANGED <<rows, queue_paused, worker, holds>>

PurgeWhatRuns(j) ==
    /\ j \in DOMAIN jobs
    /\ jobs[j].state \in {"running", "completed", "cancelled"}
    /\ jobs' = [jobs EXCEPT ![j] = PurgedJob(@)]
    /\ UNCHANGED <<rows, queue_paused, worker, holds>>

PurgeAndForget(j) ==
    /\ j \in DOMAIN jobs
    /\ jobs[j].state \in {"completed", "cancelled"}
    /\ jobs' = [jobs EXCEPT ![j] = [PurgedJob(@) EXCEPT !.attempt = 0]]
    /\ UNCHANGED <<rows, queue_paused, worker, holds>>

PurgeAnythingWaiting(j) ==
    /\ j \in DOMAIN jobs
    /\ jobs[j].state \in Waiting \cup {"failed"}
    /\ jobs' = [jobs EXCEPT ![j] = PurgedJob(@)]
    /\ UNCHANGED <<rows, queue_paused, worker, holds>>

SubmitUnlessQueuePaused(o) ==
    /\ ~queue_paused[o.queue]
    /\ Len(jobs) < MaxJobs
    /\ jobs' = Append(jobs, HandMadeJob(o))
    /\ UNCHANGED <<rows, queue_paused, worker, holds>>

SubmittedWithLabel(o) ==
    [cron_name |-> CHOOSE s \in Schedules : TRUE, queue |-> o.queue, state |-> "available",
     attempt |-> 0, max_attempts |-> o.max_attempts, owner |-> None]

----------------------------------------------------------------------------
(* Variants of the budget.                                                 *)

AlwaysRetryable(job) == "retryable"
DeadOneTooEarly(job) ==
    IF job.attempt + 1 < job.max_attempts THEN "retryable" ELSE "failed"

(* The schedule's attempts as they are now, not the job's own. *)
BudgetOfSchedule(job) ==
    IF job.attempt < (IF RowOf(job) = None THEN 1 ELSE RowOf(job).max_attempts)
    THEN "retryable" ELSE "failed"

FailDeletesExhausted(w, claim) ==
    /\ worker[w] = "up"
    /\ claim \in holds[w]
    /\ Owns(w, claim)
    /\ jobs' = IF jobs[claim.job].attempt < jobs[claim.job].max_attempts
               THEN [jobs EXCEPT ![claim.job] = FailedJob(@)]
               ELSE SubSeq(jobs, 1, claim.job - 1) \o SubSeq(jobs, claim.job + 1, Len(jobs))
    /\ Forgets(w, claim)
    /\ UNCHANGED <<rows, queue_paused, worker>>

(* An exhausted job that is not rescued runs for ever, in nobody's hands. *)
RescueWhatHasAttemptsLeft(j) ==
    /\ j \in DOMAIN jobs
    /\ \E w \in Workers : worker[w] = "up"
    /\ jobs[j].state = "running"
    /\ jobs[j].attempt < jobs[j].max_attempts
    /\ Silent(j)
    /\ jobs' = [jobs EXCEPT ![j] = RescuedJob(@)]
    /\ UNCHANGED <<rows, queue_paused, worker, holds>>

RescueCompletes(job) ==
    [job EXCEPT !.state = IF job.attempt < job.max_attempts THEN "retryable" ELSE "completed"]
FailCompletes(job) ==
    [job EXCEPT !.state = IF job.attempt < job.max_attempts THEN "retryable" ELSE "completed"]

SnoozeCounts(job) == [job EXCEPT !.state = "scheduled"]
SnoozeLowersAttempt(job) == [job EXCEPT !.state = "scheduled", !.attempt = @ - 1]

----------------------------------------------------------------------------
(* Variants of claim, fence and rescue.                                    *)

(* Two workers have read the same waiting row, and both take it. *)
ClaimWithoutLock(w, j) ==
    /\ j \in DOMAIN jobs
    /\ worker[w] = "up"
    /\ HasRoom(w)
    /\ QueueUnpaused(jobs[j])
    /\ \/ /\ StillWaiting(jobs[j])
          /\ jobs' = [jobs EXCEPT ![j] = ClaimedJob(jobs[j], w)]
       \/ /\ jobs[j].state = "running"
          /\ jobs' = [jobs EXCEPT ![j].owner = w]
    /\ Remembers(w, [job |-> j, attempt |-> jobs'[j].attempt])
    /\ UNCHANGED <<rows, queue_paused, worker>>

ClaimKeepsAttempt(job, w) ==
    [job EXCEPT !.state = "running", !.owner = w, !.attempt = IF @ = 0 THEN 1 ELSE @]
WaitingOrRunning(job) == job.state \in Waiting \cup {"running"}
AnyRoom(w) == TRUE

FinishUnfenced(w, claim) ==
    /\ worker[w] = "up"
    /\ claim \in holds[w]
    /\ jobs' = [jobs EXCEPT ![claim.job] = FinishedJob(@)]
    /\ Forgets(w, claim)
    /\ UNCHANGED <<rows, queue_paused, worker>>

FailUnfenced(w, claim) ==
    /\ worker[w] = "up"
    /\ claim \in holds[w]
    /\ jobs' = [jobs EXCEPT ![claim.job] = FailedJob(@)]
    /\ Forgets(w, claim)
    /\ UNCHANGED <<rows, queue_paused, worker>>

SnoozeUnfenced(w, claim) ==
    /\ worker[w] = "up"
    /\ claim \in holds[w]
    /\ jobs[claim.job].max_attempts < AttemptLimit
    /\ jobs' = [jobs EXCEPT ![claim.job] = SnoozedJob(@)]
    /\ Forgets(w, claim)
    /\ UNCHANGED <<rows, queue_paused, worker>>

CancelOwnUnfenced(w, claim) ==
    /\ worker[w] = "up"
    /\ claim \in holds[w]
    /\ jobs' = [jobs EXCEPT ![claim.job] = CancelledJob(@)]
    /\ Forgets(w, claim)
    /\ UNCHANGED <<rows, queue_paused, worker>>

CancelOwnFails(w, claim) ==
    /\ worker[w] = "up"
    /\ claim \in holds[w]
    /\ Owns(w, claim)
    /\ jobs' = [jobs EXCEPT ![claim.job] = FailedJob(@)]
    /\ Forgets(w, claim)
    /\ UNCHANGED <<rows, queue_paused, worker>>

NothingLearnt(w, claim) == UNCHANGED holds

Anybody(j) == TRUE

(* A worker lets go of what is still its own. *)
SettleInSilence(w, claim) ==
    /\ worker[w] = "up"
    /\ claim \in holds[w]
    /\ holds' = [holds EXCEPT ![w] = @ \ {claim}]
    /\ UNCHANGED <<rows, queue_paused, jobs, worker>>

RescueByNobody(j) ==
    /\ j \in DOMAIN jobs
    /\ jobs[j].state = "running"
    /\ Silent(j)
    /\ jobs' = [jobs EXCEPT ![j] = RescuedJob(@)]
    /\ UNCHANGED <<rows, queue_paused, worker, holds>>

----------------------------------------------------------------------------
(* The heap is not handed out where somebody may pause its queue again and *)
(* again, nor does a job end where its workers crash again and again.      *)

StormNext == StableNext \/ \E q \in Queues : PauseQueue(q)
PauseStormSpec == Spec /\ Repairs /\ <>[][StormNext]_vars

CrashStormNext == StableNext \/ \E w \in Workers : CrashWorker(w)
CrashStormSpec == Spec /\ Repairs /\ <>[][CrashStormNext]_vars

NoRepairsSpec == Spec /\ <>[][StableNext]_vars

----------------------------------------------------------------------------
(* Witnesses: each says that something never happens, and has to be        *)
(* violated, or the properties above hold of too little.                   *)

(* A worker comes back, and its job runs in other hands. *)
NeverLateOutcome ==
    ~ \E w, v \in Workers : \E claim \in holds[w] :
        /\ w # v
        /\ worker[w] = "up"
        /\ ClaimOf(claim.job) \in holds[v]
        /\ Current(v, ClaimOf(claim.job))

(* Each of two guards of the fence can be the only one that stands in the  *)
(* way; the third can't, see OneOwner.                                     *)
OnlyFails(guard) ==
    \E w \in Workers : \E claim \in holds[w] :
        LET job == jobs[claim.job]
        IN  /\ StillRunning(job, w, claim) # (guard = "StillRunning")
            /\ SameAttempt(job, w, claim) # (guard = "SameAttempt")
            /\ SameOwner(job, w, claim) # (guard = "SameOwner")
NeverOnlyStillRunning == ~OnlyFails("StillRunning")
NeverOnlySameAttempt == ~OnlyFails("SameAttempt")

(* A paused queue with a heap of fires, and somebody who could take it. *)
NeverHeapInPausedQueue ==
    ~ \E q \in Queues, s \in Schedules, w \in Workers :
        /\ queue_paused[q]
        /\ rows[s] # None
        /\ rows[s].last > 1
        /\ \A j \in 1..2 : StateOf(j) \in Waiting /\ jobs[j].queue = q
        /\ HasFreeHands(w)

NeverPausedScheduleRuns ==
    ~ \E j \in DOMAIN jobs :
        /\ InGoodHands(j)
        /\ ~queue_paused[jobs[j].queue]
        /\ RowOf(jobs[j]) # None
        /\ RowOf(jobs[j]).paused

NeverBothPaused ==
    ~ \E j \in DOMAIN jobs, w \in Workers :
        /\ Waits(j)
        /\ HasFreeHands(w)
        /\ queue_paused[jobs[j].queue]
        /\ RowOf(jobs[j]) # None
        /\ RowOf(jobs[j]).paused

NeverRetryThenSuccess ==
    ~ \E j \in DOMAIN jobs :
        jobs[j].state = "completed" /\ jobs[j].attempt = 2 /\ jobs[j].max_attempts = 2

NeverDead == ~ \E j \in DOMAIN jobs : jobs[j].state = "failed" /\ jobs[j].attempt > 1

(* A job in its second life, whose old worker still believes in the first. *)
NeverDeadRetried ==
    ~ \E j \in DOMAIN jobs, w \in Workers : \E claim \in holds[w] :
        /\ jobs[j].state = "available"
        /\ jobs[j].attempt > 0
        /\ claim.job = j

NeverSnoozed == ~ \E j \in DOMAIN jobs : jobs[j].state = "scheduled" /\ jobs[j].attempt = 2

(* These are steps. *)
NeverTriggeredWhilePaused ==
    [][LET row == RowOf(jobs'[Len(jobs')])
       IN  Len(jobs') > Len(jobs) /\ row # None => ~row.paused]_vars
NeverRescuedFromFrozen ==
    [][\A j \in DOMAIN jobs :
          Runs(j) /\ worker[jobs[j].owner] = "frozen" /\ ClaimOf(j) \in holds[jobs[j].owner] =>
              jobs'[j].state # "retryable"]_vars
NeverComesBackLate ==
    [][\A w \in Workers : \A claim \in holds[w] :
          worker[w] = "frozen" /\ ~Current(w, claim) => worker'[w] # "up"]_vars
NeverFails ==
    [][\A j \in DOMAIN jobs : InGoodHands(j) => jobs'[j].state # "retryable"]_vars
NeverToldTooLate ==
    [][\A w \in Workers : \A claim \in holds[w] :
          ~Current(w, claim) /\ worker'[w] = "up" => claim \in holds'[w]]_vars

NeverCancelBesideRunning ==
    ~ \E j, k \in DOMAIN jobs :
        /\ jobs[j].state = "cancelled"
        /\ InGoodHands(k)
        /\ jobs[j].cron_name = jobs[k].cron_name

NeverCancelledUnderway ==
    ~ \E j \in DOMAIN jobs, w \in Workers :
        jobs[j].state = "cancelled" /\ worker[w] = "up" /\ ClaimOf(j) \in holds[w]

(* A cancelled job whose schedule is gone. *)
NeverCancelledOrphan ==
    ~ \E j \in DOMAIN jobs : jobs[j].state = "cancelled" /\ RowOf(jobs[j]) = None

(* A worker has finished a job and does not know it. *)
NeverAnswerLost ==
    ~ \E j \in DOMAIN jobs, w \in Workers :
        jobs[j].state = "completed" /\ worker[w] = "up" /\ ClaimOf(j) \in holds[w]

NeverClaimUnheard ==
    ~ \E j \in DOMAIN jobs : LET w == jobs[j].owner
        IN  /\ Runs(j)
            /\ worker[w] = "up"
            /\ ClaimOf(j) \notin holds[w]
            /\ \E claim \in holds[w] : claim.job = j

(* A worker holds two claims of one job, the old one and its own new one. *)
NeverHoldsTwice ==
    ~ \E w \in Workers : \E old, new \in holds[w] :
        old.job = new.job /\ old # new /\ Current(w, new)

(* A job was made with other attempts than its schedule has now. *)
NeverEditedSince ==
    ~ \E j \in DOMAIN jobs :
        /\ RowOf(jobs[j]) # None
        /\ Runs(j)
        /\ RowOf(jobs[j]).max_attempts > jobs[j].max_attempts
        /\ RowOf(jobs[j]).queue # jobs[j].queue

=============================================================================
