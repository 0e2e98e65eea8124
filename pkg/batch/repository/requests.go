package repository

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type clientRequest struct {
	Fingerprint    string
	JobExecutionID *core.JobExecutionID
	Answer         string
}

// requests implements ports.Requests.
type requests struct{ store *store }

// ClaimRequest implements ports.Requests: an INSERT, and a query if the key exists.
func (r *requests) ClaimRequest(ctx context.Context, key ports.RequestKey, fingerprint string) (ports.ClientRequest, error) {
	made := r.store.exec(ctx, `INSERT INTO {client_request} (client, request_key, fingerprint, created_at) VALUES (?, ?, ?, {now})
		ON CONFLICT (client, request_key) DO NOTHING`, key.Client, key.Key, fingerprint)
	if made.Error != nil {
		return ports.ClientRequest{}, fmt.Errorf("claim request %q: %w", key.Key, made.Error)
	}
	if made.RowsAffected == 1 {
		return ports.ClientRequest{}, nil
	}
	row, err := r.request(ctx, key)
	switch {
	case err != nil:
		return ports.ClientRequest{}, err
	case row.Fingerprint != fingerprint:
		return ports.ClientRequest{}, &ports.KeyReusedError{Key: key.Key}
	}
	return ports.ClientRequest{Answer: row.Answer, Execution: orZero(row.JobExecutionID)}, nil
}

// AnswerRequest implements ports.Requests.
func (r *requests) AnswerRequest(ctx context.Context, key ports.RequestKey, answer string) (string, error) {
	kept := r.store.exec(ctx, "UPDATE {client_request} SET answer = ? WHERE client = ? AND request_key = ? AND answer = ''", answer, key.Client, key.Key)
	if kept.Error != nil {
		return "", fmt.Errorf("store the response to request %q: %w", key.Key, kept.Error)
	}
	if kept.RowsAffected == 1 {
		return answer, nil
	}
	row, err := r.request(ctx, key)
	return row.Answer, err
}

func (r *requests) request(ctx context.Context, key ports.RequestKey) (clientRequest, error) {
	var rows []clientRequest
	err := r.store.scan(ctx, &rows, "SELECT fingerprint, job_execution_id, answer FROM {client_request} WHERE client = ? AND request_key = ?", key.Client, key.Key)
	if err != nil {
		return clientRequest{}, fmt.Errorf("read request %q: %w", key.Key, err)
	}
	if len(rows) == 0 { // it was purged in between
		return clientRequest{}, fmt.Errorf("read request %q: %w", key.Key, core.ErrNotFound)
	}
	return rows[0], nil
}

// claim notes in the launch's transaction the execution that its request has started. Of two
// launches for one request the second waits here for the first, and is refused.
func (l *launch) claim(ctx context.Context, id core.JobExecutionID) error {
	key := l.req.Request
	if key == (ports.RequestKey{}) {
		return nil
	}
	noted := l.repo.store.exec(ctx, "UPDATE {client_request} SET job_execution_id = ? WHERE client = ? AND request_key = ? AND job_execution_id IS NULL", id, key.Client, key.Key)
	if noted.Error == nil && noted.RowsAffected == 0 {
		return &refusalError{&ports.RequestStartedError{Key: key.Key}}
	}
	return noted.Error
}

func (p *purge) requests(ctx context.Context) error {
	if p.filter.DryRun || p.filter.Instance != 0 || p.filter.JobName != "" {
		return nil
	}
	return p.store.exec(ctx, "DELETE FROM {client_request} WHERE created_at < ?", instant{Time: p.filter.EndedBefore}).Error
}
