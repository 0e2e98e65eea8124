package acceptance

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

const root = "../.." // of the module

// The shipped job and its example run on a copy, as they write into their own folder.
func newBirdstrikes(t *testing.T, url string) *scene {
	t.Helper()
	s := newScene(t, url, nil)
	for _, folder := range []string{"example/birdstrikes/data", "example/birdstrikes/migrations"} {
		require.NoError(t, os.CopyFS(filepath.Join(s.dir, folder), os.DirFS(filepath.Join(root, folder))))
	}
	for _, file := range []string{"jobs/birdstrikes.yaml", "example/birdstrikes/birdstrikes.yaml"} {
		text, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Join(s.dir, filepath.Dir(file)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, file), text, 0o600))
	}
	return s
}

func TestTheShippedJobLoadsSummarisesAndExportsExactly(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newBirdstrikes(t, url)
		code, out := s.run("run", "jobs/birdstrikes.yaml")
		require.Zero(t, code, out)
		require.Contains(t, out, "COMPLETED")
		db, r := s.open()
		want := strikes(t)
		require.Len(t, want, 10_000)
		require.Equal(t, want, s.storedStrikes(db))
		summary := summarise(want, 1990)
		require.Len(t, summary, 34)
		require.Equal(t, summary, s.exported("jobs/out/species_since_1990.csv"))
		require.Equal(t, []int64{34}, s.ints(db, "select count(*) from species_summary", 1))
		total, attempts := s.totals(r, "load", "year", int64(1990))
		require.Equal(t, 1, attempts)
		require.Equal(t, core.Counters{Read: 10_000, Write: 10_000, Commit: 10}, total)

		code, out = s.run("run", "jobs/birdstrikes.yaml")
		require.Equal(t, 4, code, out)
		require.Contains(t, out, "job birdstrikes is already complete with these parameters (execution 1)")

		code, out = s.run("run", "jobs/birdstrikes.yaml", "year=1995")
		require.Zero(t, code, out)
		require.Equal(t, want, s.storedStrikes(db), "an upsert of the same lines changes nothing")
		summary = summarise(want, 1995)
		require.Equal(t, summary, s.exported("jobs/out/species_since_1995.csv"))
		since := int64(0)
		for _, strike := range want {
			if strike.date >= "1995" {
				since++
			}
		}
		total, _ = s.totals(r, "load", "year", int64(1995))
		require.Equal(t, core.Counters{Read: 10_000, Write: since, Filter: 10_000 - since, Commit: 10}, total)
	})
}

func TestTheExampleDoesTheSameWithItsOwnTypes(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "birdstrikes")
	out, err := build(program, "example/birdstrikes")
	require.NoError(t, err, out)
	inTurn(t, 1, func(t *testing.T, url string) {
		s := newBirdstrikes(t, url)
		code, out := s.startProgram(program, "run", "example/birdstrikes/birdstrikes.yaml").wait()
		require.Zero(t, code, out)
		db, _ := s.open()
		require.Equal(t, []int64{10_000, 34}, s.ints(db, "select count(*), count(distinct species) from strikes", 2))
		require.Equal(t, summarise(strikes(t), 1990), s.exported("example/birdstrikes/out/species_since_1990.csv"))
		code, out = s.startProgram(program, "run", "example/birdstrikes/birdstrikes.yaml").wait()
		require.Equal(t, 4, code, out)
	})
}

func TestTheHelloWorldOfTheReadmeGreets(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "hello")
	out, err := build(program, "example/hello")
	require.NoError(t, err, out)
	text, err := os.ReadFile(filepath.Join(root, "example/hello/hello.yaml"))
	require.NoError(t, err)
	s := newScene(t, testdb.SQLite(t), map[string]string{"hello.yaml": string(text)})
	code, out := s.startProgram(program, "run", "hello.yaml", "name=world").wait()
	require.Zero(t, code, out)
	require.Contains(t, out, "Hello, world!\n")
}

type strike struct {
	line                                                           int
	date, airport, state, operator, aircraft, phase, species, cost string
	damaged                                                        bool
	speed                                                          string // empty means null
}

func strikes(t *testing.T) []strike {
	t.Helper()
	file, err := os.Open(filepath.Join(root, "example/birdstrikes/data/birdstrikes.csv"))
	require.NoError(t, err)
	defer file.Close()
	reader := csv.NewReader(file)
	head, err := reader.Read()
	require.NoError(t, err)
	var list []strike
	for {
		record, err := reader.Read()
		if err == io.EOF {
			return list
		}
		require.NoError(t, err)
		of := func(column string) string { return record[slices.Index(head, column)] }
		line, _ := reader.FieldPos(0)
		species := strings.ToLower(of("Wildlife Species"))
		if strings.HasPrefix(species, "unknown") {
			species = "unknown"
		}
		list = append(list, strike{
			line: line, date: of("Flight Date"), airport: of("Airport Name"), state: of("Origin State"),
			operator: strings.ReplaceAll(of("Aircraft Airline Operator"), "*", ""), aircraft: of("Aircraft Make Model"),
			phase: strings.ToLower(of("Phase of flight")), species: species, cost: of("Cost Total $"),
			damaged: of("Effect Amount of damage") != "None", speed: of("Speed IAS in knots"),
		})
	}
}

func (s *scene) storedStrikes(db tx.Database) []strike {
	s.t.Helper()
	rows, err := db.Conn().QueryContext(context.Background(), `
		select line, cast(date as text), airport, state, operator, aircraft, phase, species, cast(cost as text),
			damaged, coalesce(cast(speed as text), '')
		from strikes order by line`)
	require.NoError(s.t, err)
	defer rows.Close()
	var list []strike
	for rows.Next() {
		var x strike
		require.NoError(s.t, rows.Scan(&x.line, &x.date, &x.airport, &x.state, &x.operator, &x.aircraft, &x.phase, &x.species, &x.cost, &x.damaged, &x.speed))
		list = append(list, x)
	}
	require.NoError(s.t, rows.Err())
	return list
}

func summarise(list []strike, year int) []string {
	type sums struct{ strikes, damaging, cost, speed, speeds int }
	by := map[string]*sums{}
	for _, x := range list {
		if x.date < strconv.Itoa(year) {
			continue
		}
		sum := by[x.species]
		if sum == nil {
			sum = &sums{}
			by[x.species] = sum
		}
		sum.strikes++
		if x.damaged {
			sum.damaging++
		}
		cost, _ := strconv.Atoi(x.cost)
		sum.cost += cost
		if speed, err := strconv.Atoi(x.speed); err == nil {
			sum.speed += speed
			sum.speeds++
		}
	}
	var lines []string
	for species, sum := range by {
		mean := ""
		if sum.speeds > 0 {
			mean = fmt.Sprint(math.Round(float64(sum.speed) / float64(sum.speeds)))
		}
		if strings.ContainsAny(species, `,"`) {
			species = strconv.Quote(species)
		}
		lines = append(lines, fmt.Sprintf("%s,%d,%d,%d,%s", species, sum.strikes, sum.damaging, sum.cost, mean))
	}
	slices.Sort(lines)
	return lines
}

func (s *scene) exported(path string) []string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, path))
	require.NoError(s.t, err)
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	require.Equal(s.t, "species,strikes,damaging,cost,mean_speed", lines[0])
	lines = lines[1:]
	slices.Sort(lines)
	return lines
}
