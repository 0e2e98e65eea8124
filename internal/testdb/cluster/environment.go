package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testtree"
)

func enterRoom(ctx context.Context) (room string, leave func() error, err error) {
	disk := os.TempDir()
	room, leave, err = takeRoom(cmp.Or(memory(), disk))
	if err != nil {
		return "", nil, err
	}
	err = errors.Join(os.Chmod(room, os.ModeSticky|0o777), buildOn(ctx, disk, room), os.Setenv("TMPDIR", room)) //nolint:gosec // as /tmp: the server may be another user
	if err != nil {
		return "", nil, errors.Join(err, leave())
	}
	return room, leave, nil
}

// buildOn lets the go command link on a disk, by a settings file: GOTMPDIR would also move tests'
// folders (testing.T.TempDir) there.
func buildOn(ctx context.Context, disk, room string) error {
	out, err := exec.CommandContext(ctx, "go", "env", "GOENV").Output()
	if err != nil {
		return fmt.Errorf("go env GOENV: %w", err)
	}
	text, err := os.ReadFile(strings.TrimSpace(string(out)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("settings of go: %w", err)
	}
	text = append(bytes.TrimSpace(text), "\nGOTMPDIR="+cmp.Or(os.Getenv("GOTMPDIR"), disk)+"\n"...) // the last one counts
	file := filepath.Join(room, "goenv")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return fmt.Errorf("settings of go: %w", err)
	}
	return errors.Join(os.Setenv("GOENV", file), os.Unsetenv("GOTMPDIR"))
}

func nameTree(ctx context.Context) error {
	root, err := testtree.Root()
	if err != nil {
		return os.Unsetenv(testtree.Variable)
	}
	sum, err := testtree.Sum(ctx, root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		return os.Unsetenv(testtree.Variable)
	}
	return os.Setenv(testtree.Variable, sum)
}

// nameServer writes the URL, which changes each time, into a file named after the server's version
// only.
func nameServer(ctx context.Context, room, admin string) error {
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return fmt.Errorf("connect to the server of %s: %w", testdb.Variable, err)
	}
	version, _, _ := strings.Cut(conn.PgConn().ParameterStatus("server_version"), " ")
	file := filepath.Join(room, "postgres-"+version+".url")
	return errors.Join(conn.Close(ctx), os.WriteFile(file, []byte(admin), 0o600), os.Setenv(testdb.Variable, file))
}
