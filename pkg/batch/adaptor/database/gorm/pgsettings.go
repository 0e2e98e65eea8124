package gormdb

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/surfin-batch/surfin/internal/lease"
)

type setting struct{ name, value string }

// ourSettings are those that the rules need (D5, L7), in order.
func ourSettings(idleInTransaction time.Duration) []setting {
	return append(textSettings(), []setting{
		{"idle_in_transaction_session_timeout", strconv.FormatInt(idleInTransaction.Milliseconds(), 10)},
		{"tcp_keepalives_idle", strconv.Itoa(int(keepAliveIdle.Seconds()))},
		{"tcp_keepalives_interval", strconv.Itoa(int(keepAliveInterval.Seconds()))},
		{"tcp_keepalives_count", strconv.Itoa(keepAliveCount)},
	}...)
}

const (
	idle   = 'I'
	within = 'T'
)

const (
	connectTimeout = 15 * time.Second
	// A lost peer is noticed after idle + interval * count.
	keepAliveIdle     = 10 * time.Second
	keepAliveInterval = 5 * time.Second
	keepAliveCount    = 3
	// A server that does not answer a cancel request or a rollback within this time loses the connection;
	// shorter for a short lease (answerTime).
	longestAnswer  = 5 * time.Second
	shortestAnswer = 250 * time.Millisecond
	idleTime       = 5 * time.Minute
	// beginAttempts bounds the dead connections that Begin steps over.
	beginAttempts = 3
)

// An owner must not wait for the server until its lease is over (rule L9).
func answerTime(of time.Duration) time.Duration {
	return max(shortestAnswer, min(longestAnswer, lease.EndTime(of)/2))
}

// textSettings are fixed, so that a value has one text whatever the settings of the server, the role or the
// database: with extra_float_digits of 0 or less the text of a float8[], a point or a row loses digits.
// lc_monetary is left alone: stored amounts of money depend on it.
func textSettings() []setting {
	return []setting{
		{"TimeZone", "UTC"},
		{"DateStyle", "ISO, MDY"},
		{"IntervalStyle", "postgres"},
		{"extra_float_digits", "1"},
		{"bytea_output", "hex"},
	}
}

func forgetTexts(params map[string]string) {
	maps.DeleteFunc(params, func(name, _ string) bool {
		return slices.ContainsFunc(textSettings(), func(s setting) bool { return strings.EqualFold(name, s.name) })
	})
}

const renewTime = 5 * time.Second

// copySettings returns the statement that gives another session the settings that this one has received
// (search_path and role, say), and then ours. The role comes last, as it may not be allowed to set the
// others.
func copySettings(ctx context.Context, conn *pgconn.PgConn, ours []setting) (string, error) {
	results, err := conn.Exec(ctx, `SELECT name, pg_catalog.current_setting(name) FROM pg_catalog.pg_settings
		WHERE source = 'session' AND context IN ('user', 'superuser') AND name NOT IN ('application_name', 'transaction_isolation', 'transaction_read_only', 'transaction_deferrable')
		UNION ALL SELECT 'role', pg_catalog.current_setting('role') ORDER BY 1`).ReadAll()
	if err != nil {
		return "", err
	}
	var set []string
	role := "SELECT 1"
	for _, result := range results {
		for _, row := range result.Rows {
			if name, value := string(row[0]), string(row[1]); name == "role" {
				role = "SELECT " + setConfig(name, value)
			} else {
				set = append(set, setConfig(name, value))
			}
		}
	}
	for _, s := range ours {
		set = append(set, setConfig(s.name, s.value))
	}
	return "SELECT " + strings.Join(set, ", ") + "; " + role, nil
}

func setConfig(name, value string) string {
	return "pg_catalog.set_config(" + literal(name) + ", " + literal(value) + ", false)"
}

func literal(text string) string {
	quoted := strings.ReplaceAll(text, "'", "''")
	if strings.Contains(quoted, `\`) {
		return "E'" + strings.ReplaceAll(quoted, `\`, `\\`) + "'"
	}
	return "'" + quoted + "'"
}

func execute(conn *pgconn.PgConn, statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), renewTime)
	defer cancel()
	return conn.Exec(ctx, statement).Close()
}

func closeNow(conn *pgconn.PgConn) error {
	if conn.IsClosed() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), renewTime)
	defer cancel()
	if err := conn.Close(ctx); err != nil && !conn.IsClosed() {
		return fmt.Errorf("close the connection: %w", err)
	}
	return nil
}
