package core

import (
	"context"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// A listener implements any one-method interface of this file. Its error or panic fails the step and is never
// swallowed (rule C16). Registered twice it is called once; calls are on the step's goroutine, in order of
// registration.
//
// An On...Error callback's error is added to the first one; its class decides.
//
// Items are boxed and belong to the engine.
type (
	// BeforeChunk: before the first read.
	BeforeChunk interface {
		BeforeChunk(ctx context.Context) error
	}
	// AfterChunk: after the commit, with the step's counters.
	AfterChunk interface {
		AfterChunk(ctx context.Context, counters Counters) error
	}
	// OnChunkError: a chunk makes the step fail.
	OnChunkError interface {
		OnChunkError(ctx context.Context, err error) error
	}

	// BeforeRead: before each read.
	BeforeRead interface {
		BeforeRead(ctx context.Context) error
	}
	// AfterRead: with each item.
	AfterRead interface {
		AfterRead(ctx context.Context, item any) error
	}
	// OnReadError: each failed read.
	OnReadError interface {
		OnReadError(ctx context.Context, err error) error
	}

	// BeforeProcess: before an item, each time.
	BeforeProcess interface {
		BeforeProcess(ctx context.Context, item any) error
	}
	// AfterProcess: result nil if filtered.
	AfterProcess interface {
		AfterProcess(ctx context.Context, item, result any) error
	}
	// OnProcessError: each failure.
	OnProcessError interface {
		OnProcessError(ctx context.Context, item any, err error) error
	}

	// BeforeWrite: in the transaction, before the writers.
	BeforeWrite interface {
		BeforeWrite(ctx context.Context, items item.Items) error
	}
	// AfterWrite: in the transaction, after the writers.
	AfterWrite interface {
		AfterWrite(ctx context.Context, items item.Items) error
	}
	// OnWriteError: after each rollback.
	OnWriteError interface {
		OnWriteError(ctx context.Context, err error, items item.Items) error
	}

	// OnSkipRead, OnSkipProcess and OnSkipWrite: once per skip, before its commit, or before the step fails.
	OnSkipRead interface {
		OnSkipRead(ctx context.Context, err error) error
	}
	// OnSkipProcess: see OnSkipRead.
	OnSkipProcess interface {
		OnSkipProcess(ctx context.Context, item any, err error) error
	}
	// OnSkipWrite: see OnSkipRead. item is as read.
	OnSkipWrite interface {
		OnSkipWrite(ctx context.Context, item any, err error) error
	}

	// BeforeStep: after the start is recorded, before the work.
	BeforeStep interface {
		BeforeStep(ctx context.Context, step *StepExecution) error
	}
	// AfterStep: before the end is recorded, with its status and exit code; may change ExitCode and Context.
	// For every started step, in reverse order; its error fails the step.
	AfterStep interface {
		AfterStep(ctx context.Context, step *StepExecution) error
	}
	// BeforeJob: after the start is recorded; its error fails the execution before the flow.
	BeforeJob interface {
		BeforeJob(ctx context.Context, job *JobExecution) error
	}
	// AfterJob: before the end is recorded; may change ExitCode; its error fails the execution.
	AfterJob interface {
		AfterJob(ctx context.Context, job *JobExecution) error
	}

	// BeforeRetry: before re-try n (1-based) after err.
	BeforeRetry interface {
		BeforeRetry(ctx context.Context, phase Phase, n int, err error) error
	}
)
