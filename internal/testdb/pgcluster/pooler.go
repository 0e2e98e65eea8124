package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/jackc/pgx/v5"
)

// ErrNoPooler is a machine without PgBouncer.
var ErrNoPooler = errors.New("PgBouncer (pgbouncer) is neither on PATH nor in /usr/sbin: " +
	"install it (Debian: apt-get install pgbouncer); `make test` does this for you")

// Pooler is a running PgBouncer before a server.
type Pooler struct {
	process
	url string
}

// URL returns the URL of the database through the pooler.
func (p *Pooler) URL() string { return p.url }

// StartPooler starts PgBouncer before a database; the mode is session, transaction or statement.
func StartPooler(ctx context.Context, database, mode string, settings ...string) (*Pooler, error) {
	bin, err := bouncer()
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		p, err := tryPooler(ctx, bin, database, append([]string{"pool_mode = " + mode}, settings...))
		if !errors.Is(err, errPortTaken) || try == portTries {
			return p, err
		}
	}
}

func tryPooler(ctx context.Context, bin, database string, settings []string) (*Pooler, error) {
	dir, who, err := folder("pooler")
	if err != nil {
		return nil, err
	}
	p, err := startPooler(ctx, bin, dir, who, database, settings)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return p, nil
}

func startPooler(ctx context.Context, bin, dir string, who account, database string, settings []string) (*Pooler, error) {
	config, err := pgx.ParseConfig(database)
	if err != nil {
		return nil, fmt.Errorf("the URL of the server behind the pooler: %w", err)
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("[databases]\n%s = host=%s port=%d user=%s password='%s'\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\nunix_socket_dir =\nauth_type = any\n",
		config.Database, config.Host, config.Port, config.User, config.Password, port)
	for _, s := range settings {
		text += s + "\n"
	}
	file := filepath.Join(dir, "pgbouncer.ini")
	if err := who.write(file, text); err != nil {
		return nil, err
	}
	p := &Pooler{process: newProcess(dir)}
	p.url = (&url.URL{
		Scheme: "postgres", User: url.User(config.User), Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		Path: "/" + config.Database, RawQuery: "sslmode=disable",
	}).String()
	// PgBouncer's other signals wait for clients.
	if err := p.supervise(who, "KILL", bin, file); err != nil {
		return nil, err
	}
	conn, err := p.connect(ctx, p.url)
	if err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, conn.Close(ctx)
}

func bouncer() (string, error) {
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNoPooler
}
