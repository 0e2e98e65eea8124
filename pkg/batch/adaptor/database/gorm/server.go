package gormdb

import (
	"context"
	"database/sql/driver"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/stdlib"
)

type server struct {
	config *pgx.ConnConfig
	// before changes the configuration of each connection, after sets up its session; either may be nil.
	before func(ctx context.Context, config *pgx.ConnConfig) error
	after  func(ctx context.Context, conn *pgx.Conn) error
	// A statement after connecting made the session's settings, which RESET would undo.
	byStatement bool
}

func (s server) connector() driver.Connector {
	var options []stdlib.OptionOpenDB
	if s.before != nil {
		options = append(options, stdlib.OptionBeforeConnect(s.before))
	}
	if s.after != nil {
		options = append(options, stdlib.OptionAfterConnect(s.after))
	}
	return stdlib.GetConnector(*s.config.Copy(), options...)
}

func (s server) setUpByStatement() server {
	config := s.config.Copy()
	var set []string
	for _, name := range slices.Sorted(maps.Keys(config.RuntimeParams)) {
		switch name {
		case "application_name", "client_encoding", "options", "replication": // every pooler accepts them, or no setting is possible
		default:
			set = append(set, setConfig(name, config.RuntimeParams[name]))
			delete(config.RuntimeParams, name)
		}
	}
	statement := "SELECT " + strings.Join(set, ", ")
	return server{config: config, byStatement: true, after: func(ctx context.Context, conn *pgx.Conn) error {
		if err := conn.PgConn().Exec(ctx, statement).Close(); err != nil {
			return fmt.Errorf("set up the session: %w", err)
		}
		return nil
	}}
}

// A heartbeat without an answer must leave time for the next.
func (s server) forControl(idleLimit time.Duration) server {
	s.config = s.config.Copy()
	s.config.BuildContextWatcherHandler = cancelling(min(time.Second, answerTime(idleLimit)))
	return s
}

func cancelling(answer time.Duration) func(conn *pgconn.PgConn) ctxwatch.Handler {
	return func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &canceller{conn: conn, answer: answer}
	}
}
