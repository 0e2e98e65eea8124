package cli

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/jobfile/testfile"
	"github.com/surfin-batch/surfin/internal/jobtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type testRun struct {
	file    string
	results []jobtest.Result
}

func (c fileCommands) testCommand() *cobra.Command {
	var junit string
	cmd := &cobra.Command{
		Use:   "test FILE_test.yaml...",
		Short: "Run tests of jobs, written in YAML",
		Long: `Runs tests of jobs. Each runs in its own temporary folder, with the real engine, on
fresh databases: SQLite, or a schema of its own in a PostgreSQL database that the file
names. A job that is built into the program, such as one in Go, is named instead of its
file. A test gives parameters, files and rows of tables, and the expected results: rows of
tables, queries and files, skipped items, numbers of steps, status and exit code.`,
		Example: "  " + c.env.app.Name + " test load_test.yaml\n  " + c.env.app.Name + " test --junit report.xml *_test.yaml",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(errors.New("which files of tests?"), "usage:  "+cmd.UseLine())
			}
			return nil
		},
		ValidArgsFunction: completeJobFiles,
		RunE:              func(cmd *cobra.Command, args []string) error { return c.test(cmd.Context(), args, junit) },
	}
	cmd.Flags().StringVar(&junit, "junit", "", "write the results to this `FILE`, as JUnit does")
	return cmd
}

func (c fileCommands) test(ctx context.Context, paths []string, junit string) error {
	var files []*testfile.File
	var wrong []error
	for _, path := range paths {
		file, err := testfile.Load(path)
		wrong = append(wrong, err)
		files = append(files, file)
	}
	if err := errors.Join(wrong...); err != nil {
		return usage(err)
	}
	var runs []testRun
	passed, failed := 0, 0
	for _, file := range files {
		run := testRun{file: file.Path}
		var printing error
		err := jobtest.Run(ctx, file, c.testConfig(), func(r jobtest.Result) {
			run.results = append(run.results, r)
			if len(r.Differences) == 0 {
				passed++
			} else {
				failed++
			}
			printing = errors.Join(printing, c.env.print(resultText(file.Path, r)))
		})
		runs = append(runs, run)
		if err := errors.Join(err, printing); err != nil {
			return usage(err)
		}
	}
	if err := c.env.print(fmt.Sprintf("%d passed, %d failed\n", passed, failed)); err != nil {
		return err
	}
	if junit != "" {
		if err := writeJUnit(junit, runs); err != nil {
			return err
		}
	}
	if failed > 0 {
		return &exitError{code: ExitFailed, err: errors.New(humanize.Plural(failed, "test") + " failed")}
	}
	return nil
}

func (c fileCommands) testConfig() jobtest.Config {
	return jobtest.Config{
		Open:    c.openTest,
		Carries: func(name string) bool { return c.env.app.Files[name] != nil },
		Zone: func(job string) *time.Location {
			file, err := c.env.loadJobFile(job)
			if err != nil {
				return nil // the run of the test says why
			}
			return file.Zone()
		},
		Getenv: func(name string) string {
			for _, entry := range c.env.environ {
				if value, is := strings.CutPrefix(entry, name+"="); is {
					return value
				}
			}
			return ""
		},
	}
}

func (c fileCommands) openTest(ctx context.Context, urls map[string]string) (*jobtest.Session, error) {
	environ := []string{"DATABASE_URL=" + urls[tx.Default]}
	for _, v := range c.env.environ {
		if strings.HasPrefix(v, "SURFIN_SECRET_") { // the only settings that a test inherits
			environ = append(environ, v)
		}
	}
	dir, err := os.MkdirTemp("", "surfin-test-settings-") // contains no surfin.yaml
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is empty
	s, err := settings.Load(settings.Source{Dir: dir, Environ: environ})
	if err != nil {
		return nil, err
	}
	s.Databases = map[string]settings.Database{}
	for name, url := range urls {
		s.Databases[name] = settings.Database{URL: url}
		s.Secrets.LearnURL("database "+name, url)
	}
	s.AutoMigrate = settings.MigrateAlways
	opened, err := c.env.app.Open(ctx, s, core.Observers())
	if err != nil {
		return nil, err
	}
	return &jobtest.Session{Service: opened.Service, Provider: opened.Provider, Close: opened.Close}, nil
}

func resultText(file string, r jobtest.Result) string {
	took := r.Duration.Round(time.Millisecond)
	if len(r.Differences) == 0 {
		return fmt.Sprintf("ok    %s: %s (%s)\n", file, r.Name, took)
	}
	text := fmt.Sprintf("FAIL  %s: %s (%s)\n", file, r.Name, took)
	for _, d := range r.Differences {
		text += "    " + strings.ReplaceAll(d, "\n", "\n    ") + "\n"
	}
	return text
}

type (
	junitReport struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		Time    string        `xml:"time,attr"`
		Failure *junitFailure `xml:"failure,omitempty"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

func writeJUnit(path string, runs []testRun) error {
	report := junitReport{}
	for _, run := range runs {
		suite := junitSuite{Name: run.file, Tests: len(run.results)}
		for _, r := range run.results {
			one := junitCase{Name: r.Name, Class: run.file, Time: fmt.Sprintf("%.3f", r.Duration.Seconds())}
			if len(r.Differences) > 0 {
				suite.Failures++
				message, _, _ := strings.Cut(r.Differences[0], "\n")
				one.Failure = &junitFailure{Message: message, Text: strings.Join(r.Differences, "\n")}
			}
			suite.Cases = append(suite.Cases, one)
		}
		report.Suites = append(report.Suites, suite)
	}
	text, err := xml.MarshalIndent(report, "", "  ")
	if err != nil {
		return fmt.Errorf("--junit: %w", err)
	}
	if err := os.WriteFile(path, append([]byte(xml.Header), append(text, '\n')...), 0o644); err != nil { //nolint:gosec // a report for others
		return usage(fmt.Errorf("--junit: %w", err))
	}
	return nil
}
