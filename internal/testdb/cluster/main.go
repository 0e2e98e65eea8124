// Command cluster starts a private PostgreSQL cluster, runs a command with SURFIN_TEST_POSTGRES
// set to a file with its admin URL, stops the cluster, and exits as the command did:
//
//	go run ./internal/testdb/cluster -- go test ./...
//
// Temporary files are in memory if there is room; those of `go build` stay on the disk. Variables
// keep their values while their meaning is the same, as `go test` compares them
// (internal/testtree). Without a command it prints the URL and runs until interrupted. A server
// that SURFIN_TEST_POSTGRES names is used.
//
// It imports internal/testdb, internal/testdb/pgcluster, internal/testtree, the repository and its
// databases.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testdb/pgcluster"
)

func main() {
	args := os.Args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	code, err := run(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func run(args []string) (code int, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	room, leave, err := enterRoom(ctx)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, leave()) }()
	if err := nameTree(ctx); err != nil {
		return 1, err
	}
	admin, err := testdb.AdminURL()
	if err != nil {
		return 1, err
	}
	if admin == "" {
		cluster, serr := pgcluster.Start(ctx)
		if serr != nil {
			return 1, serr
		}
		defer func() { err = errors.Join(err, cluster.Stop()) }()
		admin = cluster.URL()
		if terr := makeTemplates(ctx, room, admin); terr != nil {
			return 1, terr
		}
	}
	fmt.Fprintln(os.Stderr, testdb.Variable+"="+admin)
	if len(args) == 0 {
		<-ctx.Done()
		return 0, nil
	}
	if err := nameServer(ctx, room, admin); err != nil {
		return 1, err
	}
	// The command gets the terminal's interrupt itself: it is waited for, not killed.
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() >= 0 {
			return exit.ExitCode(), nil
		}
		return 1, fmt.Errorf("run %s: %w", args[0], err)
	}
	return 0, nil
}
