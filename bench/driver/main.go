// Command driver compares Surfin with the same work done without it: on the same machine, in the same
// minutes, each contestant in a separate process.
//
//	make bench                             # all workloads, about ten minutes on two cores
//	make bench FLAGS='-run w9' SIZE=20000
//	make bench-peers                       # with other programs, too
//	make bench FLAGS='-page docs/reference/benchmarks.md'
//	make bench-lose                        # what Spring Batch loses, and who does not
//	make bench-scale                       # the cost of work, idle workers and a long history for the server
//
// Machines differ and are noisy: the important number is the ratio to the floor of the same round, the first
// contestant of a workload. docs/benchmarks.md describes each workload.
//
// It imports everything that it compares; nothing imports it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"
)

type options struct {
	size, rounds int
	seed         uint64
	run, only    *regexp.Regexp
	markdown     bool
	page         string
	peers, lose  bool
	scale        bool
	spring       string
	dir          string
	postgres     string
}

func main() {
	if text := os.Getenv(workVariable); text != "" {
		os.Exit(runChild(text))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := drive(ctx, os.Args[1:])
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

func parseOptions(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("driver", flag.ContinueOnError)
	flags.IntVar(&o.size, "size", 200_000, "rows of a workload with a share of 1; the others have more or fewer")
	flags.IntVar(&o.rounds, "rounds", 3, "measured rounds; what a target compares has two more")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of the data and of the order in each round")
	run := flags.String("run", "", "only workloads whose name matches this pattern")
	only := flags.String("only", "", "only contestants whose name matches this pattern, and the floors")
	flags.BoolVar(&o.markdown, "markdown", false, "print the tables as markdown")
	flags.StringVar(&o.page, "page", "", "put the tables into this page, between its markers, and a plot beside it")
	flags.BoolVar(&o.peers, "peers", false, "compare with Spring Batch (needs java and mvn), pgloader, DuckDB and Sling (need python3 with venv), and mattn's SQLite (needs a C compiler), too")
	flags.BoolVar(&o.lose, "lose", false, "show instead what becomes of rows that are skipped, stopped or retried, with Spring Batch and here")
	flags.BoolVar(&o.scale, "scale", false, "show instead what work and idle workers cost the server: the sections of -run (costs, parts, idle, history; -size is the executions of history)")
	flags.StringVar(&o.spring, "spring", "", "version of Spring Batch; default: that of bench/springbatch/pom.xml")
	flags.StringVar(&o.dir, "dir", "", "folder for files and databases; default: the system's for temporary files")
	flags.StringVar(&o.postgres, "postgres", "", "URL of a superuser of a PostgreSQL server; default: one of the driver's own")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected %q", flags.Arg(0))
	}
	if o.size < minSize || o.rounds < 1 {
		return o, fmt.Errorf("-size must be at least %d, and -rounds at least 1", minSize)
	}
	var err error
	if o.run, err = regexp.Compile(*run); err != nil {
		return o, fmt.Errorf("-run: %w", err)
	}
	if o.only, err = regexp.Compile(*only); err != nil {
		return o, fmt.Errorf("-only: %w", err)
	}
	return o, nil
}

const minSize = 20_000

func drive(ctx context.Context, args []string) (err error) {
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	b, err := newBench(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	switch {
	case o.lose:
		return showLost(ctx, b)
	case o.scale:
		return b.showScale(ctx)
	}
	report := newReport(ctx, b)
	failed := 0
	for _, w := range workloads() {
		if !o.run.MatchString(w.Name) {
			continue
		}
		begin := time.Now()
		table, err := b.compare(ctx, w)
		if err != nil {
			return fmt.Errorf("%s: %w", w.Name, err)
		}
		fmt.Fprintf(os.Stderr, "%s: done in %.0f s\n", w.Name, time.Since(begin).Seconds())
		report.tables = append(report.tables, table)
		failed += table.failures()
		fmt.Println(table.text(o.markdown))
	}
	if len(report.tables) == 0 {
		return fmt.Errorf("no workload matches -run %q", o.run)
	}
	if o.page != "" {
		if err := report.writePage(o.page); err != nil {
			return err
		}
	}
	fmt.Println(targetText(report.tables, o.markdown))
	fmt.Println(report.footer())
	if failed > 0 {
		return fmt.Errorf("%d contestants failed: see the tables", failed)
	}
	return nil
}

func showLost(ctx context.Context, b *bench) error {
	text, err := b.lose(ctx)
	if err != nil {
		return err
	}
	fmt.Println(text)
	if b.page == "" {
		return nil
	}
	return replaceMarked(b.page, text)
}
