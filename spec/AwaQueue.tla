------------------------------ MODULE AwaQueue ------------------------------
(***************************************************************************)
(* What happens to a job after it has been committed.                      *)
(*                                                                         *)
(* AwaCron ends where a fire has become a row in the table of jobs.  Here  *)
(* that is one step, Enqueue, and the story goes on: workers claim jobs,   *)
(* run them, and write how it ended.  A worker may fall silent while it    *)
(* runs a job, because it has died, hangs, or is cut off; then the job is  *)
(* taken from it and runs again, and the old worker may come back and      *)
(* believe that the job is still its own.  An answer of the database may   *)
(* get lost, so that a worker does not know what it has done.  Operators   *)
(* pause schedules and queues, cancel, remove, edit, and put dead jobs     *)
(* back or delete them, at any moment; and code makes jobs by hand.        *)
(*                                                                         *)
(* The module states what one step of each party is, and what must hold    *)
(* all the same: no job is lost, no attempt has two owners, who lost a job *)
(* changes nothing, each job has as many attempts as it was made with, and *)
(* the two kinds of pause stop one thing each.                             *)
(*                                                                         *)
(* The fence is the pair of owner and attempt.  It works because `attempt` *)
(* only ever rises: what gives a job more attempts, a snooze or a second   *)
(* life, raises `max_attempts` instead of lowering `attempt`.              *)
(*                                                                         *)
(* Time is left out: a job that waits for its next attempt can be claimed  *)
(* at once, and a silent worker can be found out at once.  Heartbeats are  *)
(* no steps either; a worker that is up renews what it believes it runs.   *)
(*                                                                         *)
(* Bounds, broken variants and witnesses are in MCAwaQueue.  The action    *)
(* names in snake_case are the function names of awa_cron.queue_actions;   *)
(* those of schedules are in awa_cron.actions.                             *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
    Workers,        \* processes that run jobs
    Schedules,      \* names under which schedules are registered
    Queues,         \* names of queues
    Offers,         \* per schedule, the queues and attempts that code may give it
    Capacity,       \* how many jobs a worker runs at once
    MaxJobs,        \* how many jobs are ever made
    AttemptLimit,   \* the highest max_attempts that a job may have
    FreshAttempts,  \* how many attempts a dead job gets when it is put back
    None            \* absence: of a row, of an owner

Offer == [queue : Queues, max_attempts : 1..AttemptLimit]
Offered == UNION {Offers[s] : s \in Schedules}

ASSUME CapacityIsPositive == Capacity \in Nat \ {0}
ASSUME MaxJobsIsNatural == MaxJobs \in Nat
ASSUME AttemptLimitIsPositive == AttemptLimit \in Nat \ {0}
ASSUME FreshAttemptsIsPositive == FreshAttempts \in Nat \ {0}
ASSUME OffersAreOffers == Offers \in [Schedules -> SUBSET Offer]
ASSUME NoneIsNoWorker == None \notin Workers
ASSUME NoneIsNoSchedule == None \notin Schedules

VARIABLES
    rows,          \* per schedule, its row or None
    queue_paused,  \* per queue, whether it is paused
    jobs,          \* the table of jobs, by id from 1
    worker,        \* per worker, whether its process is up, frozen or down
    holds          \* per worker, the claims that it believes it runs

vars == <<rows, queue_paused, jobs, worker, holds>>

(* A schedule's row, as far as it matters to jobs.  `last` counts the      *)
(* fires that became jobs; it stands for last_enqueued_at.                 *)
Row == [queue : Queues, max_attempts : 1..AttemptLimit,
        last : 0..MaxJobs, paused : BOOLEAN]

Waiting == {"scheduled", "available", "retryable"}
Final == {"completed", "failed", "cancelled", "purged"}

(* A job's row.  `cron_name` is a label, not a reference; a job made by    *)
(* hand has none.  `owner` is who claimed it last; it stays when the job   *)
(* no longer runs.  A failed job is a dead one: it is kept, for somebody   *)
(* to look at or put back.  Of a purged one nothing is left but its id,    *)
(* which never comes again.                                                *)
Job == [cron_name : Schedules \cup {None}, queue : Queues,
        state : Waiting \cup {"running"} \cup Final,
        attempt : 0..AttemptLimit, max_attempts : 1..AttemptLimit,
        owner : Workers \cup {None}]

JobIds == 1..MaxJobs

(* What a worker remembers of a claim.                                     *)
Claims == [job : JobIds, attempt : 1..AttemptLimit]

TypeOK ==
    /\ rows \in [Schedules -> Row \cup {None}]
    /\ queue_paused \in [Queues -> BOOLEAN]
    /\ Len(jobs) <= MaxJobs
    /\ \A j \in DOMAIN jobs : jobs[j] \in Job
    /\ worker \in [Workers -> {"up", "frozen", "down"}]
    /\ holds \in [Workers -> SUBSET Claims]

Init ==
    /\ rows = [s \in Schedules |-> None]
    /\ queue_paused = [q \in Queues |-> FALSE]
    /\ jobs = <<>>
    /\ worker = [w \in Workers |-> "up"]
    /\ holds = [w \in Workers |-> {}]

----------------------------------------------------------------------------
(* The guards, each a line of a WHERE clause.                              *)

(* Of a claim. *)
StillWaiting(job) == job.state \in Waiting
QueueUnpaused(job) == ~queue_paused[job.queue]

(* Of every outcome: `claim` is what worker w believes it runs. *)
StillRunning(job, w, claim) == job.state = "running"
SameAttempt(job, w, claim) == job.attempt = claim.attempt
SameOwner(job, w, claim) == job.owner = w

Owns(w, claim) ==
    /\ StillRunning(jobs[claim.job], w, claim)
    /\ SameAttempt(jobs[claim.job], w, claim)
    /\ SameOwner(jobs[claim.job], w, claim)

(* Of a rescue: nobody renews the job.  Heartbeats are fenced as outcomes  *)
(* are, or an old claim would keep a new one alive that nobody runs.       *)
Renews(w, job, claim) == claim.attempt = job.attempt
Silent(j) ==
    LET w == jobs[j].owner
    IN  ~ /\ worker[w] = "up"
          /\ \E claim \in holds[w] : claim.job = j /\ Renews(w, jobs[j], claim)

(* Of a cancellation, with or without what is running. *)
Cancels(job, s, running) ==
    /\ job.cron_name = s
    /\ job.state \in Waiting \/ (running /\ job.state = "running")

----------------------------------------------------------------------------
(* What the actions write, in operators small enough to be broken one by   *)
(* one in MCAwaQueue.                                                      *)

NewJob(s) ==
    [cron_name |-> s, queue |-> rows[s].queue, state |-> "available",
     attempt |-> 0, max_attempts |-> rows[s].max_attempts, owner |-> None]

HandMadeJob(o) ==
    [cron_name |-> None, queue |-> o.queue, state |-> "available",
     attempt |-> 0, max_attempts |-> o.max_attempts, owner |-> None]

ClaimedJob(job, w) ==
    [job EXCEPT !.state = "running", !.attempt = @ + 1, !.owner = w]

AfterFailure(job) ==
    IF job.attempt < job.max_attempts THEN "retryable" ELSE "failed"

FinishedJob(job) == [job EXCEPT !.state = "completed"]
FailedJob(job) == [job EXCEPT !.state = AfterFailure(job)]
SnoozedJob(job) == [job EXCEPT !.state = "scheduled", !.max_attempts = @ + 1]
RescuedJob(job) == [job EXCEPT !.state = AfterFailure(job)]
CancelledJob(job) == [job EXCEPT !.state = "cancelled"]
PurgedJob(job) == [job EXCEPT !.state = "purged"]
RevivedJob(job) ==
    [job EXCEPT !.state = "available", !.max_attempts = job.attempt + FreshAttempts]

InsertedRow(o) ==
    [queue |-> o.queue, max_attempts |-> o.max_attempts, last |-> 0, paused |-> FALSE]
EditedRow(row, o) ==
    [row EXCEPT !.queue = o.queue, !.max_attempts = o.max_attempts]
MarkedRow(row) == [row EXCEPT !.last = @ + 1]
PausedRow(row) == [row EXCEPT !.paused = TRUE]
ResumedRow(row) == [row EXCEPT !.paused = FALSE]

(* A worker hears that its statement was committed and remembers a claim,  *)
(* or forgets it; or the answer is lost on the way, and it believes what   *)
(* it believed before.                                                     *)
Remembers(w, claim) ==
    \/ holds' = [holds EXCEPT ![w] = @ \cup {claim}]
    \/ UNCHANGED holds
Forgets(w, claim) ==
    \/ holds' = [holds EXCEPT ![w] = @ \ {claim}]
    \/ UNCHANGED holds

----------------------------------------------------------------------------
(* The system's own steps: what every worker's loops do.                   *)

(* awa_cron.queue_actions.claim: a worker with room takes a waiting job of *)
(* a queue that is not paused.  Nothing of the job's schedule is asked.    *)
(* The order in which jobs are taken is left open.                         *)
HasRoom(w) == Cardinality(holds[w]) < Capacity

Claim(w, j) ==
    /\ j \in DOMAIN jobs
    /\ worker[w] = "up"
    /\ HasRoom(w)
    /\ StillWaiting(jobs[j])
    /\ QueueUnpaused(jobs[j])
    /\ jobs' = [jobs EXCEPT ![j] = ClaimedJob(jobs[j], w)]
    /\ Remembers(w, [job |-> j, attempt |-> jobs'[j].attempt])
    /\ UNCHANGED <<rows, queue_paused, worker>>

(* awa_cron.queue_actions.finish: the handler returned.                    *)
Finish(w, claim) ==
    /\ worker[w] = "up"
    /\ claim \in holds[w]
    /\ Owns(w, claim)
    /\ jobs' = [jobs EXCEPT ![claim.job] = FinishedJob(@)]
    /\ Forgets(w, claim)
    /\ UNCHANGED <<rows, queue_paused, worker>>

(* awa_cron.queue_actions.fail: the handler raised, asked for a retry, or  *)
(* its time was up.  The job waits for its next attempt, or is dead when   *)
(* it has none left.                                                       *)
Fail(w, claim) ==
    /\ worker[w] = "up"
    /\ claim \in holds[w]
    /\ Owns(w, claim)
    /\ jobs' = [jobs EXCEPT ![claim.job] = FailedJob(@)]
    /\ Forgets(w, claim)
    /\ UNCHANGED <<rows, queue_paused, worker>>

(* awa_cron.queue_actions.snooze: the handler asks to be called later; the *)
(* attempt does not count.  At the limit it can't be given back, and the   *)
(* handler has to return or raise.                                         *)
Snooze(w, claim) ==
    /\ worker[w] = "up"
    /\ claim \in holds[w]
    /\ Owns(w, claim)
    /\ jobs[claim.job].max_attempts < AttemptLimit
    /\ jobs' = [jobs EXCEPT ![claim.job] = SnoozedJob(@)]
    /\ Forgets(w, claim)
    /\ UNCHANGED <<rows, queue_paused, worker>>

(* awa_cron.queue_actions.cancel_own: the handler says that nothing will   *)
(* come of its job.                                                        *)
CancelOwn(w, claim) ==
    /\ worker[w] = "up"
    /\ claim \in holds[w]
    /\ Owns(w, claim)
    /\ jobs' = [jobs EXCEPT ![claim.job] = CancelledJob(@)]
    /\ Forgets(w, claim)
    /\ UNCHANGED <<rows, queue_paused, worker>>

(* awa_cron.queue_actions.finish, fail, snooze, cancel_own or heartbeat,   *)
(* no row written: the job is no longer this worker's, and now it knows.   *)
SettleTooLate(w, claim) ==
    /\ worker[w] = "up"
    /\ claim \in holds[w]
    /\ ~Owns(w, claim)
    /\ holds' = [holds EXCEPT ![w] = @ \ {claim}]
    /\ UNCHANGED <<rows, queue_paused, jobs, worker>>

(* awa_cron.queue_actions.rescue, by any worker that is up: a job that     *)
(* nobody renews is taken from its owner.  The attempt has failed.         *)
Rescue(j) ==
    /\ j \in DOMAIN jobs
    /\ \E w \in Workers : worker[w] = "up"
    /\ jobs[j].state = "running"
    /\ Silent(j)
    /\ jobs' = [jobs EXCEPT ![j] = RescuedJob(@)]
    /\ UNCHANGED <<rows, queue_paused, worker, holds>>

System ==
    \/ \E w \in Workers :
          \/ \E j \in JobIds : Claim(w, j)
          \/ \E claim \in Claims :
                \/ Finish(w, claim)
                \/ Fail(w, claim)
                \/ Snooze(w, claim)
                \/ CancelOwn(w, claim)
                \/ SettleTooLate(w, claim)
    \/ \E j \in JobIds : Rescue(j)

----------------------------------------------------------------------------
(* The environment: the scheduler, operators, deployments and faults.      *)

(* awa_cron.actions.atomic_enqueue, of which AwaCron tells the rest: a     *)
(* fire is marked and becomes a job, whatever the state of its queue.      *)
Enqueue(s) ==
    /\ rows[s] # None
    /\ ~rows[s].paused
    /\ Len(jobs) < MaxJobs
    /\ rows' = [rows EXCEPT ![s] = MarkedRow(@)]
    /\ jobs' = Append(jobs, NewJob(s))
    /\ UNCHANGED <<queue_paused, worker, holds>>

(* awa_cron.actions.trigger: one job at once, whatever is paused.          *)
Trigger(s) ==
    /\ rows[s] # None
    /\ Len(jobs) < MaxJobs
    /\ jobs' = Append(jobs, NewJob(s))
    /\ UNCHANGED <<rows, queue_paused, worker, holds>>

(* awa_cron.queue_actions.submit: somebody makes a job by hand, whatever   *)
(* is paused.                                                              *)
Submit(o) ==
    /\ Len(jobs) < MaxJobs
    /\ jobs' = Append(jobs, HandMadeJob(o))
    /\ UNCHANGED <<rows, queue_paused, worker, holds>>

(* awa_cron.actions.sync: a deployment registers a schedule, or gives it   *)
(* another queue or other attempts.  Jobs that are there keep theirs.      *)
Sync(s, o) ==
    /\ IF rows[s] = None
       THEN rows' = [rows EXCEPT ![s] = InsertedRow(o)]
       ELSE rows' = [rows EXCEPT ![s] = EditedRow(@, o)]
    /\ rows' # rows
    /\ UNCHANGED <<queue_paused, jobs, worker, holds>>

(* awa_cron.actions.remove: the row goes, its jobs stay.                   *)
Remove(s) ==
    /\ rows[s] # None
    /\ rows' = [rows EXCEPT ![s] = None]
    /\ UNCHANGED <<queue_paused, jobs, worker, holds>>

(* awa_cron.actions.pause                                                  *)
Pause(s) ==
    /\ rows[s] # None
    /\ ~rows[s].paused
    /\ rows' = [rows EXCEPT ![s] = PausedRow(@)]
    /\ UNCHANGED <<queue_paused, jobs, worker, holds>>

(* awa_cron.actions.resume                                                 *)
Resume(s) ==
    /\ rows[s] # None
    /\ rows[s].paused
    /\ rows' = [rows EXCEPT ![s] = ResumedRow(@)]
    /\ UNCHANGED <<queue_paused, jobs, worker, holds>>

(* awa_cron.queue_actions.pause_queue                                      *)
PauseQueue(q) ==
    /\ ~queue_paused[q]
    /\ queue_paused' = [queue_paused EXCEPT ![q] = TRUE]
    /\ UNCHANGED <<rows, jobs, worker, holds>>

(* awa_cron.queue_actions.resume_queue                                     *)
ResumeQueue(q) ==
    /\ queue_paused[q]
    /\ queue_paused' = [queue_paused EXCEPT ![q] = FALSE]
    /\ UNCHANGED <<rows, jobs, worker, holds>>

(* awa_cron.queue_actions.cancel_jobs: the waiting jobs that carry a       *)
(* schedule's name, be the schedule there or not; if asked for, those that *)
(* run as well, whose workers find out by their next heartbeat or outcome. *)
CancelJobs(s, running) ==
    /\ \E j \in DOMAIN jobs : Cancels(jobs[j], s, running)
    /\ jobs' = [j \in DOMAIN jobs |->
                  IF Cancels(jobs[j], s, running) THEN CancelledJob(jobs[j]) ELSE jobs[j]]
    /\ UNCHANGED <<rows, queue_paused, worker, holds>>

(* awa_cron.queue_actions.retry_dead: a dead job begins a second life of   *)
(* FreshAttempts attempts, unless that would exceed the limit.             *)
RetryDead(j) ==
    /\ j \in DOMAIN jobs
    /\ jobs[j].state = "failed"
    /\ jobs[j].attempt + FreshAttempts <= AttemptLimit
    /\ jobs' = [jobs EXCEPT ![j] = RevivedJob(@)]
    /\ UNCHANGED <<rows, queue_paused, worker, holds>>

(* awa_cron.queue_actions.purge_dead: a dead job's row is deleted.         *)
PurgeDead(j) ==
    /\ j \in DOMAIN jobs
    /\ jobs[j].state = "failed"
    /\ jobs' = [jobs EXCEPT ![j] = PurgedJob(@)]
    /\ UNCHANGED <<rows, queue_paused, worker, holds>>

(* awa_cron.queue_actions.purge_finished: a job that is done with, and not *)
(* dead, is deleted when it is old enough; how old is of no concern here.  *)
PurgeFinished(j) ==
    /\ j \in DOMAIN jobs
    /\ jobs[j].state \in {"completed", "cancelled"}
    /\ jobs' = [jobs EXCEPT ![j] = PurgedJob(@)]
    /\ UNCHANGED <<rows, queue_paused, worker, holds>>

(* Nobody's function: a worker hangs or is cut off from the database.  It  *)
(* remembers everything.                                                   *)
FreezeWorker(w) ==
    /\ worker[w] = "up"
    /\ worker' = [worker EXCEPT ![w] = "frozen"]
    /\ UNCHANGED <<rows, queue_paused, jobs, holds>>

(* Nobody's function: it goes on where it stood.                           *)
ThawWorker(w) ==
    /\ worker[w] = "frozen"
    /\ worker' = [worker EXCEPT ![w] = "up"]
    /\ UNCHANGED <<rows, queue_paused, jobs, holds>>

(* Nobody's function: a worker dies, and with it all that it knew.         *)
CrashWorker(w) ==
    /\ worker[w] # "down"
    /\ worker' = [worker EXCEPT ![w] = "down"]
    /\ holds' = [holds EXCEPT ![w] = {}]
    /\ UNCHANGED <<rows, queue_paused, jobs>>

(* Nobody's function: it is started again, under the same name at worst.   *)
RecoverWorker(w) ==
    /\ worker[w] = "down"
    /\ worker' = [worker EXCEPT ![w] = "up"]
    /\ UNCHANGED <<rows, queue_paused, jobs, holds>>

Environment ==
    \/ \E s \in Schedules :
          \/ Enqueue(s)
          \/ Trigger(s)
          \/ \E o \in Offers[s] : Sync(s, o)
          \/ Remove(s)
          \/ Pause(s)
          \/ Resume(s)
          \/ \E running \in BOOLEAN : CancelJobs(s, running)
    \/ \E q \in Queues :
          \/ PauseQueue(q)
          \/ ResumeQueue(q)
    \/ \E o \in Offered : Submit(o)
    \/ \E j \in JobIds :
          \/ RetryDead(j)
          \/ PurgeDead(j)
          \/ PurgeFinished(j)
    \/ \E w \in Workers :
          \/ FreezeWorker(w)
          \/ ThawWorker(w)
          \/ CrashWorker(w)
          \/ RecoverWorker(w)

----------------------------------------------------------------------------
Next == System \/ Environment

(* A worker's loops: one claims while there is room, one per claim runs    *)
(* the handler and writes how it ended, one rescues.  Each goes on as long *)
(* as it has something to do; whether the handler returns, raises or asks  *)
(* for later is not its choice, but one of them it does.                   *)
ClaimSome(w) == \E j \in JobIds : Claim(w, j)
Settle(w, claim) ==
    \/ Finish(w, claim)
    \/ Fail(w, claim)
    \/ Snooze(w, claim)
    \/ CancelOwn(w, claim)
    \/ SettleTooLate(w, claim)
RescueSome == \E j \in JobIds : Rescue(j)

Fairness ==
    /\ \A w \in Workers : WF_vars(ClaimSome(w))
    /\ \A w \in Workers, claim \in Claims : WF_vars(Settle(w, claim))
    /\ WF_vars(RescueSome)

Spec == Init /\ [][Next]_vars /\ Fairness

(* The stable cluster of the liveness properties.  Anything may happen,    *)
(* for as long as it likes; but from some moment on nobody pauses a queue  *)
(* and no worker freezes or crashes, every pause of a queue ends and every *)
(* worker comes back.  Pauses of schedules, edits, removals, cancellations *)
(* and second lives may go on for ever.                                    *)
StableNext ==
    \/ System
    \/ \E s \in Schedules :
          \/ Enqueue(s)
          \/ Trigger(s)
          \/ \E o \in Offers[s] : Sync(s, o)
          \/ Remove(s)
          \/ Pause(s)
          \/ Resume(s)
          \/ \E running \in BOOLEAN : CancelJobs(s, running)
    \/ \E q \in Queues : ResumeQueue(q)
    \/ \E o \in Offered : Submit(o)
    \/ \E j \in JobIds : RetryDead(j) \/ PurgeDead(j) \/ PurgeFinished(j)
    \/ \E w \in Workers : ThawWorker(w) \/ RecoverWorker(w)

Repairs ==
    /\ \A q \in Queues : WF_vars(ResumeQueue(q))
    /\ \A w \in Workers : WF_vars(ThawWorker(w)) /\ WF_vars(RecoverWorker(w))

StableSpec == Spec /\ Repairs /\ <>[][StableNext]_vars

----------------------------------------------------------------------------
(* Properties.  They speak of what can be observed, before and after a     *)
(* step, and lean on the operators above as little as they can, so that a  *)
(* fault in an operator shows.  Where a property is about one action, the  *)
(* action's name says which step is meant, no more.                        *)

Kept(s) == rows[s] # None /\ rows'[s] # None
Removed(s) == rows[s] # None /\ rows'[s] = None
OfferOf(row) == [queue |-> row.queue, max_attempts |-> row.max_attempts]
StateOf(j) == IF j \in DOMAIN jobs THEN jobs[j].state ELSE None
Waits(j) == jobs[j].state \in Waiting
Runs(j) == jobs[j].state = "running"
Ended(j) == jobs[j].state \in Final

ClaimOf(j) == [job |-> j, attempt |-> jobs[j].attempt]
Current(w, claim) ==
    /\ Runs(claim.job)
    /\ jobs[claim.job].attempt = claim.attempt
    /\ jobs[claim.job].owner = w
InGoodHands(j) ==
    /\ Runs(j)
    /\ worker[jobs[j].owner] = "up"
    /\ ClaimOf(j) \in holds[jobs[j].owner]
HasFreeHands(w) == worker[w] = "up" /\ Cardinality(holds[w]) < Capacity

(* P27.  A job that has not ended either waits, and whoever has room can   *)
(* claim it unless its queue is paused; or runs in the hands of a worker   *)
(* that is up and can say how it ended; or can be rescued.                 *)
NoLostJob ==
    \A j \in DOMAIN jobs :
        \/ Ended(j)
        \/ /\ Waits(j)
           /\ \A w \in Workers :
                 HasFreeHands(w) /\ ~queue_paused[jobs[j].queue] => ENABLED Claim(w, j)
        \/ /\ InGoodHands(j)
           /\ ENABLED Finish(jobs[j].owner, ClaimOf(j))
           /\ ENABLED Fail(jobs[j].owner, ClaimOf(j))
        \/ /\ Runs(j)
           /\ (\E w \in Workers : worker[w] = "up") =>
                 ENABLED (Rescue(j) /\ jobs'[j].state # "running")

(* P22.  Jobs are only ever added, one at a time; whose they are and where *)
(* they wait never changes.                                                *)
JobsStay ==
    [][/\ Len(jobs') \in {Len(jobs), Len(jobs) + 1}
       /\ \A j \in DOMAIN jobs :
             /\ jobs'[j].cron_name = jobs[j].cron_name
             /\ jobs'[j].queue = jobs[j].queue]_vars

(* P27.  A job begins with the queue and the attempts that its schedule    *)
(* has at that moment, or that it is given by hand, and nothing else       *)
(* happens to any job.                                                     *)
Fresh(name, offer) ==
    [cron_name |-> name, queue |-> offer.queue, state |-> "available",
     attempt |-> 0, max_attempts |-> offer.max_attempts, owner |-> None]
JobsBeginFresh ==
    [][Len(jobs') > Len(jobs) =>
          \/ \E s \in Schedules : rows[s] # None /\ jobs' = Append(jobs, Fresh(s, rows[s]))
          \/ \E o \in Offered :
                /\ Submit(o)
                /\ jobs' = Append(jobs, Fresh(None, o))
                /\ UNCHANGED <<rows, queue_paused, worker, holds>>]_vars

(* The states of a job and the ways between them.                          *)
StatesFollowTheGraph ==
    [][\A j \in DOMAIN jobs : jobs'[j].state # jobs[j].state =>
          \/ Waits(j) /\ jobs'[j].state \in {"running", "cancelled"}
          \/ Runs(j) /\ jobs'[j].state \in
                {"completed", "failed", "cancelled", "retryable", "scheduled"}
          \/ jobs[j].state = "failed" /\ jobs'[j].state \in {"available", "purged"}
          \/ jobs[j].state \in {"completed", "cancelled"} /\ jobs'[j].state = "purged"]_vars

(* What has ended has ended: only the dead come back, through an operator; *)
(* and nothing else becomes of any but that it is deleted one day.         *)
FinalStaysFinal ==
    [][\A j \in DOMAIN jobs : Ended(j) /\ jobs'[j] # jobs[j] =>
          \/ jobs[j].state = "failed" /\ RetryDead(j)
          \/ jobs'[j] = PurgedJob(jobs[j])]_vars

(* P24.  Who begins an attempt is up, has room, and takes a job that waits *)
(* in a queue that is not paused.                                          *)
ClaimsOnlyFromRunningQueue ==
    [][\A j \in DOMAIN jobs : jobs'[j].attempt # jobs[j].attempt =>
          /\ ~queue_paused[jobs[j].queue]
          /\ Waits(j)
          /\ jobs'[j].state = "running"
          /\ HasFreeHands(jobs'[j].owner)]_vars

(* A claim counts one attempt, and nothing ever counts one back: the pair  *)
(* of job and attempt names one claim for ever.                            *)
AttemptsOnlyRise ==
    [][\A j \in DOMAIN jobs :
          /\ jobs'[j].attempt - jobs[j].attempt =
                IF ~Runs(j) /\ jobs'[j].state = "running" THEN 1 ELSE 0
          /\ jobs'[j].attempt = jobs[j].attempt => jobs'[j].owner = jobs[j].owner]_vars

(* A claim is for an attempt that nobody ever held, so no late outcome can *)
(* be taken for that of the new one.                                       *)
FencesAreFresh ==
    [][\A j \in DOMAIN jobs : ~Runs(j) /\ jobs'[j].state = "running" =>
          \A w \in Workers : [job |-> j, attempt |-> jobs'[j].attempt] \notin holds[w]]_vars

(* No two workers hold one attempt, and who holds the current one is its   *)
(* owner.                                                                  *)
OneOwner ==
    \A w \in Workers : \A claim \in holds[w] :
        /\ \A v \in Workers \ {w} : claim \notin holds[v]
        /\ claim.job \in DOMAIN jobs
        /\ claim.attempt <= jobs[claim.job].attempt
        /\ claim = ClaimOf(claim.job) => jobs[claim.job].owner = w

(* A worker whose job was taken from it changes no job, and one that still *)
(* has it no other.                                                        *)
FencedFinalisation ==
    [][\A w \in Workers : \A claim \in holds[w] \ holds'[w] :
          \A j \in DOMAIN jobs :
              (j = claim.job /\ Current(w, claim)) \/ jobs'[j] = jobs[j]]_vars

(* What a worker says is what is written, by its job's own attempts; and   *)
(* none that lives lets go of a job without a word.                        *)
OutcomeIsWritten ==
    [][\A w \in Workers : \A claim \in holds[w] :
          LET job == jobs[claim.job]
              state == jobs'[claim.job].state
          IN  /\ Finish(w, claim) => state = "completed"
              /\ Snooze(w, claim) => state = "scheduled"
              /\ CancelOwn(w, claim) => state = "cancelled"
              /\ Fail(w, claim) =>
                    state = IF job.attempt = job.max_attempts THEN "failed" ELSE "retryable"
              /\ Current(w, claim) /\ claim \notin holds'[w] =>
                    state # "running" \/ worker'[w] = "down"]_vars

(* A job is completed by the worker that runs it, and by nobody else.      *)
CompletedByItsOwner ==
    [][\A j \in DOMAIN jobs : jobs[j].state # "completed" /\ jobs'[j].state = "completed" =>
          InGoodHands(j)]_vars

(* A job is not taken from a worker that is up and knows of it.            *)
RescueSparesTheLiving ==
    \A j \in DOMAIN jobs : InGoodHands(j) => ~ENABLED Rescue(j)

(* Nobody takes more than there is room for, and who has died knows of     *)
(* nothing.                                                                *)
WorkersKeepToThemselves ==
    \A w \in Workers :
        /\ Cardinality(holds[w]) <= Capacity
        /\ worker[w] = "down" => holds[w] = {}

(* Who is not up learns nothing, and a fault changes no row; where nobody  *)
(* is up, what runs can only be cancelled.                                 *)
SilentWorkersAreSilent ==
    [][/\ \A w \in Workers : holds'[w] # holds[w] => worker[w] = "up" \/ worker'[w] = "down"
       /\ worker' # worker => UNCHANGED <<rows, queue_paused, jobs>>
       /\ (\A w \in Workers : worker[w] # "up") =>
             \A j \in DOMAIN jobs : Runs(j) => jobs'[j].state \in {"running", "cancelled"}]_vars

(* P27.  What waits has attempts left, what is dead has none, and none has *)
(* more than its own.                                                      *)
RetryBudget ==
    \A j \in DOMAIN jobs :
        /\ jobs[j].attempt <= jobs[j].max_attempts
        /\ Waits(j) => jobs[j].attempt < jobs[j].max_attempts
        /\ jobs[j].state = "failed" => jobs[j].attempt = jobs[j].max_attempts

(* P27.  The budget is the job's own: a snooze gives back the one attempt  *)
(* that it took, a second life has FreshAttempts, and nothing else gives   *)
(* or takes any.                                                           *)
BudgetIsTheJobsOwn ==
    [][\A j \in DOMAIN jobs :
          jobs'[j].max_attempts - jobs[j].max_attempts =
              IF Runs(j) /\ jobs'[j].state = "scheduled" THEN 1
              ELSE IF Ended(j) /\ jobs'[j].state \in Waiting THEN FreshAttempts
              ELSE 0]_vars

(* P21.  A trigger needs a row, and nothing of that row or of its queue.   *)
TriggerIgnoresPause ==
    \A s \in Schedules :
        rows[s] # None /\ Len(jobs) < MaxJobs =>
            ENABLED (Trigger(s) /\ Len(jobs') = Len(jobs) + 1)

(* P21.  A trigger makes one job and touches nothing else.                 *)
TriggerLeavesSchedule ==
    [][\A s \in Schedules : Trigger(s) =>
          /\ Len(jobs') = Len(jobs) + 1
          /\ jobs'[Len(jobs')].cron_name = s
          /\ UNCHANGED <<rows, queue_paused, worker, holds>>]_vars

(* P13, P24.  `last` moves when, and only when, an unpaused schedule's     *)
(* fire becomes a job; the queue has no say.                               *)
FiresBecomeJobs ==
    [][\A s \in Schedules :
          /\ Enqueue(s) => Kept(s) /\ rows'[s].last = rows[s].last + 1
          /\ Kept(s) /\ rows'[s].last # rows[s].last =>
                /\ ~rows[s].paused
                /\ rows' = [rows EXCEPT ![s].last = @ + 1]
                /\ Len(jobs') = Len(jobs) + 1
                /\ jobs'[Len(jobs')].cron_name = s
                /\ UNCHANGED <<queue_paused, worker, holds>>]_vars

(* P22.  A row goes alone: no job, no claim and no other row with it.      *)
RemoveLeavesJobs ==
    [][\A s \in Schedules : Removed(s) =>
          /\ \A r \in Schedules \ {s} : rows'[r] = rows[r]
          /\ UNCHANGED <<queue_paused, jobs, worker, holds>>]_vars

(* P22.  A row comes with what was offered, unpaused, and brings nothing.  *)
RegisterStartsFresh ==
    [][\A s \in Schedules : rows[s] = None /\ rows'[s] # None =>
          /\ \E o \in Offers[s] :
                rows' = [rows EXCEPT ![s] = [queue |-> o.queue, max_attempts |-> o.max_attempts,
                                             last |-> 0, paused |-> FALSE]]
          /\ UNCHANGED <<queue_paused, jobs, worker, holds>>]_vars

(* P27.  An edit changes what later jobs begin with, and nothing else.     *)
EditLeavesJobs ==
    [][\A s \in Schedules :
          Kept(s) /\ OfferOf(rows'[s]) # OfferOf(rows[s]) =>
              /\ OfferOf(rows'[s]) \in Offers[s]
              /\ rows' = [rows EXCEPT ![s].queue = rows'[s].queue,
                                      ![s].max_attempts = rows'[s].max_attempts]
              /\ UNCHANGED <<queue_paused, jobs, worker, holds>>]_vars

(* P23.  Pausing or resuming a schedule writes one column.  That its jobs  *)
(* go on meanwhile is in NoLostJob, RetryBudget and PausesIndependent.     *)
CronPauseLeavesJobs ==
    [][\A s \in Schedules : Kept(s) /\ rows'[s].paused # rows[s].paused =>
          /\ rows' = [rows EXCEPT ![s].paused = ~@]
          /\ UNCHANGED <<queue_paused, jobs, worker, holds>>]_vars

(* P24.  So does pausing or resuming a queue.                              *)
QueuePauseTouchesOnlyPause ==
    [][\A q \in Queues : queue_paused'[q] # queue_paused[q] =>
          /\ queue_paused' = [queue_paused EXCEPT ![q] = ~@]
          /\ UNCHANGED <<rows, jobs, worker, holds>>]_vars

(* P24.  In a paused queue no attempt begins, and all else goes on: fires  *)
(* and triggers become jobs, what runs ends, what has fallen silent is     *)
(* rescued, what waits can be cancelled, the dead can be put back.  Jobs   *)
(* can be made by hand as well.                                            *)
QueuePauseBlocksDispatchOnly ==
    \A q \in Queues : queue_paused[q] =>
        /\ \A s \in Schedules :
              rows[s] # None /\ rows[s].queue = q /\ Len(jobs) < MaxJobs =>
                  ENABLED Trigger(s) /\ (rows[s].paused \/ ENABLED Enqueue(s))
        /\ \A o \in Offered : Len(jobs) < MaxJobs => ENABLED Submit(o)
        /\ \A j \in {k \in DOMAIN jobs : jobs[k].queue = q} :
              /\ \A w \in Workers : ~ENABLED Claim(w, j)
              /\ ~Ended(j) /\ jobs[j].cron_name # None =>
                    ENABLED CancelJobs(jobs[j].cron_name, TRUE)
              /\ InGoodHands(j) =>
                    /\ ENABLED Finish(jobs[j].owner, ClaimOf(j))
                    /\ ENABLED Fail(jobs[j].owner, ClaimOf(j))

(* P25.  All four combinations: a schedule's pause alone decides whether   *)
(* its fires become jobs, a queue's alone whether its jobs are handed out. *)
PausesIndependent ==
    /\ \A s \in Schedules :
          ENABLED Enqueue(s) <=>
              rows[s] # None /\ ~rows[s].paused /\ Len(jobs) < MaxJobs
    /\ \A j \in DOMAIN jobs, w \in Workers :
          ENABLED Claim(w, j) <=>
              HasFreeHands(w) /\ Waits(j) /\ ~queue_paused[jobs[j].queue]

(* P26.  By name, all of them and only them, and what runs only on demand; *)
(* or by the worker that runs it.                                          *)
CancelOnlyNamed ==
    [][/\ \A s \in Schedules, running \in BOOLEAN :
             CancelJobs(s, running) =>
                 \A j \in DOMAIN jobs :
                     jobs'[j] = IF jobs[j].cron_name = s /\ (Waits(j) \/ (running /\ Runs(j)))
                                THEN [jobs[j] EXCEPT !.state = "cancelled"] ELSE jobs[j]
       /\ \A j \in DOMAIN jobs :
             jobs[j].state # "cancelled" /\ jobs'[j].state = "cancelled" =>
                 \/ /\ jobs[j].cron_name # None
                    /\ \E running \in BOOLEAN : CancelJobs(jobs[j].cron_name, running)
                 \/ InGoodHands(j) /\ CancelOwn(jobs[j].owner, ClaimOf(j))]_vars

(* P26.  The label is enough: what has not ended can be cancelled, also    *)
(* when its schedule is paused or gone.                                    *)
CancelNeedsOnlyTheLabel ==
    \A j \in DOMAIN jobs :
        LET Cancelled(running) ==
                ENABLED (CancelJobs(jobs[j].cron_name, running) /\ jobs'[j].state = "cancelled")
        IN  jobs[j].cron_name # None =>
                /\ Waits(j) => Cancelled(FALSE)
                /\ Runs(j) => Cancelled(TRUE)

(* P22 to P25, P27.  What operators and deployments ask for can be done at *)
(* any time, whatever workers are doing, and then is done.                 *)
OperatorsAreHeard ==
    /\ \A s \in Schedules :
          /\ rows[s] # None =>
                /\ ~rows[s].paused => ENABLED (Pause(s) /\ rows'[s].paused)
                /\ rows[s].paused => ENABLED (Resume(s) /\ ~rows'[s].paused)
                /\ ENABLED (Remove(s) /\ rows'[s] = None)
          /\ \A o \in Offers[s] :
                rows[s] = None \/ OfferOf(rows[s]) # o =>
                    ENABLED (Sync(s, o) /\ OfferOf(rows'[s]) = o)
    /\ \A q \in Queues :
          /\ ~queue_paused[q] => ENABLED (PauseQueue(q) /\ queue_paused'[q])
          /\ queue_paused[q] => ENABLED (ResumeQueue(q) /\ ~queue_paused'[q])
    /\ \A j \in DOMAIN jobs :
          jobs[j].state = "failed" =>
              /\ jobs[j].attempt + FreshAttempts <= AttemptLimit =>
                    ENABLED (RetryDead(j) /\ jobs'[j].state \in Waiting)
              /\ ENABLED (PurgeDead(j) /\ jobs'[j].state = "purged")

(* A worker that is up can claim, say how it ended, and be told when that  *)
(* is too late; and the answer can reach it.                               *)
WorkersAreHeard ==
    \A w \in {v \in Workers : worker[v] = "up"} :
        /\ \A j \in DOMAIN jobs :
              HasFreeHands(w) /\ Waits(j) /\ ~queue_paused[jobs[j].queue] =>
                  LET claim == [job |-> j, attempt |-> jobs[j].attempt + 1]
                  IN  ENABLED (Claim(w, j) /\ claim \in holds'[w])
        /\ \A claim \in holds[w] :
              IF Current(w, claim)
              THEN /\ ENABLED (Finish(w, claim) /\ claim \notin holds'[w])
                   /\ ENABLED (Fail(w, claim) /\ claim \notin holds'[w])
                   /\ ENABLED (CancelOwn(w, claim) /\ claim \notin holds'[w])
                   /\ jobs[claim.job].max_attempts < AttemptLimit =>
                         ENABLED (Snooze(w, claim) /\ claim \notin holds'[w])
              ELSE ENABLED (SettleTooLate(w, claim) /\ claim \notin holds'[w])

----------------------------------------------------------------------------
(* Liveness, of StableSpec.                                                *)

(* P27.  Every attempt ends, in an outcome or a rescue, and attempts are   *)
(* bounded.                                                                *)
EveryJobEventuallyFinal ==
    \A j \in JobIds : StateOf(j) \in Waiting \cup {"running"} ~> StateOf(j) \in Final

(* P24.  What piled up in a paused queue is handed out after its pause.    *)
HeapEventuallyDispatched ==
    \A j \in JobIds : StateOf(j) \in Waiting ~> StateOf(j) \notin Waiting

(* A worker whose job was taken from it finds out.                         *)
LateWorkerEventuallyKnows ==
    \A w \in Workers, claim \in Claims :
        (claim \in holds[w] /\ ~Current(w, claim)) ~> claim \notin holds[w]

=============================================================================
