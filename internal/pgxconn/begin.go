package pgxconn

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Begin is the statements of a transaction that wait for its first statement ([tx.Attr.Late]).
type Begin []string

type takenKey struct{}

// RunFirst is [Run] for an f that sends begin with its statement, or before it.
func RunFirst(ctx context.Context, conn tx.Conn, statement string, f func(c *pgx.Conn, begin Begin) error) error {
	var begin Begin
	return Run(context.WithValue(ctx, takenKey{}, &begin), conn, statement, func(c *pgx.Conn) error { return f(c, begin) })
}

// Taken is where a connection puts the Begin for the f of [RunFirst]; nil means another f.
func Taken(ctx context.Context) *Begin {
	begin, _ := ctx.Value(takenKey{}).(*Begin) //nolint:errcheck // absent is nil
	return begin
}

// Exec sends begin by itself.
func (b Begin) Exec(ctx context.Context, c *pgx.Conn) error {
	if len(b) == 0 {
		return nil
	}
	return c.PgConn().Exec(ctx, strings.Join(b, "; ")).Close()
}

// CopyFrom runs a COPY in one round trip with begin, and returns the number of rows.
func (b Begin) CopyFrom(ctx context.Context, c *pgx.Conn, r io.Reader, text string) (int64, error) {
	tag, err := c.PgConn().CopyFrom(ctx, r, strings.Join(append(b[:len(b):len(b)], text), "; "))
	return tag.RowsAffected(), err
}

// ExecPrepared runs a prepared statement in one round trip with begin.
func (b Begin) ExecPrepared(ctx context.Context, c *pgx.Conn, name string, values [][]byte, formats []int16) (*pgconn.Result, error) {
	if len(b) == 0 {
		result := c.PgConn().ExecPrepared(ctx, name, values, formats, nil).Read()
		return result, result.Err
	}
	p := c.PgConn().StartPipeline(ctx)
	for _, statement := range b {
		p.SendQueryParams(statement, nil, nil, nil, nil)
	}
	p.SendQueryPrepared(name, values, formats, nil)
	err := p.Sync()
	var result *pgconn.Result
	for range len(b) + 1 {
		if err == nil {
			result, err = nextResult(p)
		}
	}
	return result, errors.Join(err, p.Close())
}

func nextResult(p *pgconn.Pipeline) (*pgconn.Result, error) {
	next, err := p.GetResults()
	if err != nil {
		return nil, err
	}
	reader, ok := next.(*pgconn.ResultReader)
	if !ok {
		return nil, errors.New("the server answered fewer statements than it received")
	}
	result := reader.Read()
	return result, result.Err
}
