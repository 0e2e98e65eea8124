package operator

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type requests struct {
	schema  *schema
	view    *viewer
	records interface {
		ports.Requests
		Execution(ctx context.Context, id core.JobExecutionID) (*core.JobExecution, error)
	}
}

// Act is a client's request with a key.
type Act struct {
	Key         ports.RequestKey
	Fingerprint string
	// Do returns the answer, which is not empty.
	Do func(ctx context.Context) (answer string, err error)
	// OneTransaction: all changes of Do are in its context's transaction, so
	// act and answer commit together. Do then starts no execution.
	OneTransaction bool
	// Refused returns the answer to an error of Do that is kept too; false
	// means that the act may be tried again.
	Refused func(err error) (answer string, kept bool)
	// Started answers for a request that has started an execution without a
	// stored answer.
	Started func(e *Execution) (answer string, err error)
}

// Once performs a client's act, and keeps the answer for repetitions from any
// process. An execution is started at most once (rule L11): the launch records
// the key in its transaction. An act of one transaction is done at most once.
// Any other is done again if its process died before the answer was kept. A key
// of another request is a Refusal (refusal.KeyReused).
func (s *requests) Once(ctx context.Context, act Act) (answer string, repeated bool, err error) {
	if err := s.schema.Prepare(ctx); err != nil {
		return "", false, err
	}
	if act.OneTransaction {
		return s.onceTogether(ctx, act)
	}
	known, err := s.claim(ctx, act)
	switch {
	case err != nil:
		return "", false, err
	case known.Answer != "":
		return known.Answer, true, nil
	case known.Execution != 0:
		answer, err = s.startedBefore(ctx, act, known)
	default:
		answer, err = s.do(ctx, act)
	}
	if err != nil {
		return "", false, err
	}
	kept, err := s.records.AnswerRequest(ctx, act.Key, answer)
	return kept, false, err
}

// A refusal is kept in another transaction: nothing of the refused act may
// stay. If the same request succeeded meanwhile, its answer counts.
func (s *requests) onceTogether(ctx context.Context, act Act) (answer string, repeated bool, err error) {
	var refused error
	answer, repeated, err = s.claimAndKeep(ctx, act, func(ctx context.Context) (string, error) {
		answer, failure := act.Do(ctx)
		refused = failure
		return answer, failure
	})
	if refused == nil {
		return answer, repeated, err
	}
	text, kept := act.Refused(refused)
	if !kept {
		return "", false, refused
	}
	return s.claimAndKeep(ctx, act, func(context.Context) (string, error) { return text, nil })
}

func (s *requests) claimAndKeep(ctx context.Context, act Act, do func(ctx context.Context) (string, error)) (answer string, repeated bool, err error) {
	db, err := s.schema.provider.Database(s.schema.database)
	if err != nil {
		return "", false, fmt.Errorf("the database of requests: %w", err)
	}
	attr := tx.Attr{}
	if db.Dialect() == tx.Postgres {
		attr.Isolation = sql.LevelReadCommitted
	}
	err = tx.NewManager(db).Do(ctx, attr, func(ctx context.Context) error {
		known, err := s.claim(ctx, act) // of two concurrent ones the second waits here
		if answer, repeated = known.Answer, known.Answer != ""; err != nil || repeated {
			return err
		}
		if answer, err = do(ctx); err != nil {
			return err
		}
		answer, err = s.records.AnswerRequest(ctx, act.Key, answer)
		return err
	})
	return answer, repeated, err
}

func (s *requests) claim(ctx context.Context, act Act) (ports.ClientRequest, error) {
	known, err := s.records.ClaimRequest(ctx, act.Key, act.Fingerprint)
	if errors.As(err, new(*ports.KeyReusedError)) {
		err = &Refusal{Reason: refusal.KeyReused, Err: err}
	}
	return known, err
}

// If another process is performing the same act, the answer is about the
// execution that it has started.
func (s *requests) do(ctx context.Context, act Act) (string, error) {
	answer, err := act.Do(ctx)
	if err == nil {
		return answer, nil
	}
	known, failure := s.claim(ctx, act)
	switch {
	case failure != nil:
		return "", errors.Join(err, failure)
	case known.Answer != "":
		return known.Answer, nil
	case known.Execution != 0:
		return s.startedBefore(ctx, act, known)
	}
	if answer, kept := act.Refused(err); kept {
		return answer, nil
	}
	return "", err
}

func (s *requests) startedBefore(ctx context.Context, act Act, known ports.ClientRequest) (string, error) {
	e, err := s.records.Execution(ctx, known.Execution)
	if err != nil {
		return "", err
	}
	return act.Started(s.view.execution(e))
}
