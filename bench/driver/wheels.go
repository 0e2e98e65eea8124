package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
)

// The peers from PyPI are in these versions. Their wheels have all files: nothing is downloaded in a run.
const (
	duckdbVersion    = "1.4.4"
	duckdbExtVersion = "1.4.4.20260205"
	slingVersion     = "1.4.11"
)

// environmentOf is the folder of a virtual environment of Python, from the folder of the driver.
func environmentOf(dir, name string) string { return filepath.Join(dir, "python-"+name) }

// installWheels makes a virtual environment with these packages, and nothing else.
func installWheels(ctx context.Context, dir string, packages ...string) error {
	python, err := exec.LookPath("python3")
	if err != nil {
		return fmt.Errorf("the comparison needs Python 3 (Debian: apt-get install python3-venv): %w", err)
	}
	if out, err := exec.CommandContext(ctx, python, "-m", "venv", dir).CombinedOutput(); err != nil { //nolint:gosec // a folder of the driver
		return fmt.Errorf("python3 -m venv (Debian: apt-get install python3-venv): %w\n%s", err, out)
	}
	args := append([]string{"-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:"}, packages...)
	if out, err := exec.CommandContext(ctx, filepath.Join(dir, "bin", "python"), args...).CombinedOutput(); err != nil { //nolint:gosec // pinned packages
		return fmt.Errorf("pip install: %w\n%s", err, out)
	}
	return nil
}

// duckdb reads a file with DuckDB, which infers its types, and inserts the rows into an attached PostgreSQL.
type duckdb struct{ format string }

// duckdbInsert measures the statement. DuckDB's URL, file and function are its arguments.
const duckdbInsert = `
import json, pathlib, sys, time
import duckdb
url, path, read = sys.argv[1:]
extension = next(pathlib.Path(duckdb.__file__).parent.parent.glob("duckdb_ext/extensions/*/*/postgres_scanner.duckdb_extension"))
db = duckdb.connect(config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"})
db.execute(f"LOAD '{extension}'")
db.execute(f"ATTACH '{url}' AS pg (TYPE postgres)")
begin = time.monotonic()
db.execute(f"INSERT INTO pg.sale SELECT * FROM {read}('{path}')")
print(json.dumps({"seconds": time.monotonic() - begin}))
`

func (c duckdb) Name() string { return "DuckDB, " + c.format }

func (c duckdb) Restarts() bool { return false }

func (c duckdb) Result(stdout []byte) (Result, error) { return parseResult(stdout) }

// Build installs DuckDB with its extension for PostgreSQL.
func (c duckdb) Build(ctx context.Context, b *bench) error {
	return installWheels(ctx, environmentOf(b.dir, "duckdb"), "duckdb=="+duckdbVersion, "duckdb-ext-postgres=="+duckdbExtVersion)
}

func (c duckdb) Command(w Work) (*exec.Cmd, error) {
	read := map[string]string{"csv": "read_csv", "jsonl": "read_ndjson"}[c.format]
	python := filepath.Join(environmentOf(filepath.Dir(w.Dir), "duckdb"), "bin", "python")
	cmd := exec.Command(python, "-c", duckdbInsert, w.URL, formOf(w.Input, c.format), read) //nolint:gosec // installed by the driver
	cmd.Dir = w.Dir
	return cmd, nil
}

// sling loads a file with Sling into the table that is there, without a temporary one and without a column of its
// own.
type sling struct{ format string }

func (c sling) Name() string { return "Sling, " + c.format }

func (c sling) Restarts() bool { return false }

// Build installs Sling.
func (c sling) Build(ctx context.Context, b *bench) error {
	return installWheels(ctx, environmentOf(b.dir, "sling"), "sling-linux-"+runtime.GOARCH+"=="+slingVersion)
}

func (c sling) Command(w Work) (*exec.Cmd, error) {
	found, err := filepath.Glob(filepath.Join(environmentOf(filepath.Dir(w.Dir), "sling"), "lib", "*", "site-packages", "sling_linux_*", "bin", "sling-linux-*"))
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("the wheel of Sling has %d programs: %w", len(found), err)
	}
	args := []string{"run", "--src-stream", "file://" + formOf(w.Input, c.format), "--tgt-conn", w.URL, "--tgt-object", "public.sale", "--mode", "truncate"}
	if c.format == "jsonl" { // else a row is one document
		args = append(args, "--src-options", "{format: jsonlines, flatten: true}")
	}
	cmd := exec.Command("sh", append([]string{"-c", `exec "$@" 2>&1`, "sh", found[0]}, args...)...) //nolint:gosec // installed by the driver
	cmd.Env = append(os.Environ(), "HOME="+w.Dir, "SLING_HOME_DIR="+w.Dir, "SLING_DISABLE_TELEMETRY=true", "SLING_LOGGING_COLOR=false",
		"SLING_DIRECT_INSERT=true", "SLING_LOADED_AT_COLUMN=false")
	cmd.Dir = w.Dir
	return cmd, nil
}

var slingRate = regexp.MustCompile(`inserted ([0-9]+) rows into .* \[([0-9,]+) r/s\]`)

// Result is the time of the rows at the rate that Sling prints: its own time is in whole seconds.
func (c sling) Result(stdout []byte) (Result, error) {
	found := slingRate.FindSubmatch(stdout)
	if found == nil {
		return Result{}, errors.New("sling printed no number of rows in a second")
	}
	rows, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		return Result{}, err
	}
	rate, err := strconv.ParseFloat(string(bytes.ReplaceAll(found[2], []byte(","), nil)), 64)
	return Result{Seconds: rows / rate}, err
}
