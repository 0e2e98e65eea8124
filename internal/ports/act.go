package ports

import (
	"context"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// The verbs of acts by a person, a client of the API or a duty of the leader (rule OP4).
const (
	VerbRun         = "run"
	VerbRestart     = "restart"
	VerbRedrive     = "redrive"
	VerbStop        = "stop"
	VerbAbandon     = "abandon"
	VerbRecover     = "recover"
	VerbPurge       = "purge"
	VerbRegister    = "register"
	VerbUnregister  = "unregister"
	VerbEnable      = "enable"
	VerbDisable     = "disable"
	VerbLeaveOut    = "leave out" // the scheduler left out a time
	VerbMigrate     = "migrate"
	VerbSet         = "set"
	VerbSubmit      = "submit"
	VerbCancel      = "cancel"
	VerbCancelGroup = "cancel group"
	VerbRerun       = "rerun"
	VerbOffer       = "offer"
	VerbSignIn      = "sign in"
	VerbSignOut     = "sign out"
)

// Verbs lists them.
func Verbs() []string {
	return []string{
		VerbRun, VerbRestart, VerbRedrive, VerbStop, VerbAbandon, VerbRecover, VerbPurge, VerbRegister, VerbUnregister, VerbEnable, VerbDisable,
		VerbLeaveOut, VerbMigrate, VerbSet, VerbSubmit, VerbCancel, VerbCancelGroup, VerbRerun, VerbOffer,
		VerbSignIn, VerbSignOut,
	}
}

// ClientActor begins the actor of a client of the API.
const ClientActor = "API client "

// Act is a recorded act with its time.
type Act struct {
	// ID orders acts of one moment, and names a page.
	ID   int64
	At   time.Time
	Verb string
	// Actor is the responsible person, "API client NAME", or a duty such as "leader".
	Actor string
	// JobName, Execution and Task are the object of the act; empty if it was something else.
	JobName   string
	Execution core.JobExecutionID
	Task      int64
	// Detail is the rest: the actor's reason, a version, the new value of a setting.
	Detail string
}

// ActFilter selects acts; zero fields select all.
type ActFilter struct {
	// Since selects those at or after a moment.
	Since time.Time
	Verb  string
	// Actor selects by name: "ada" finds "ada", and "ada (root@host)".
	Actor   string
	JobName string
	// Instance selects acts on executions of an instance, and on the redrives of these, the newest execution
	// first; other fields but Limit do not count then.
	Instance core.JobInstanceID
	// Before selects acts before the one with this ID: the next page.
	Before int64
	// Limit is the maximum number of acts; 0 means 50.
	Limit int
}

// Acts stores the acts.
type Acts interface {
	// Acts lists acts, newest first. A call reads a bounded number of acts: with next other than 0 there may
	// be others before the act with that ID, also if the list is shorter than the limit.
	Acts(ctx context.Context, filter ActFilter) (list []Act, next int64, err error)
	// NoteAct notes an act that concerns no execution, task or definition.
	NoteAct(ctx context.Context, verb, actor, detail string) error
	// PurgeActs deletes at most limit of the oldest records that are older than age, including
	// transitions.
	PurgeActs(ctx context.Context, age time.Duration, limit int) (int64, error)
}

// By is the actor of an act on an execution, and the state that the act is for.
type By struct {
	Actor, Reason string
	// Epoch: an execution with another one refuses the act with a *MovedError; 0 means any.
	Epoch int64
}

// Bound is the state that a launch is for (rule OP14).
type Bound struct {
	// Execution is the newest of its instance and has Epoch, or any if that is 0: the one that the launch follows or
	// redrives.
	Execution core.JobExecutionID
	Epoch     int64
	// Redrive is the newest redrive of Execution when the items of a redrive were selected; 0 means that it had none.
	Redrive core.JobExecutionID
}

type actorKey struct{}

// WithActor names the actor of the work of ctx, for the audit.
func WithActor(ctx context.Context, actor string) context.Context {
	return context.WithValue(ctx, actorKey{}, actor)
}

// ActorOf returns the actor of WithActor; empty if there is none.
func ActorOf(ctx context.Context) string {
	actor, _ := ctx.Value(actorKey{}).(string) //nolint:errcheck // absent is empty
	return actor
}

type reasonKey struct{}

// WithReason gives the actor's reason for the work of ctx, for the audit.
func WithReason(ctx context.Context, reason string) context.Context {
	return context.WithValue(ctx, reasonKey{}, reason)
}

// ReasonOf returns the reason of WithReason, or "".
func ReasonOf(ctx context.Context) string {
	reason, _ := ctx.Value(reasonKey{}).(string) //nolint:errcheck // absent is empty
	return reason
}
