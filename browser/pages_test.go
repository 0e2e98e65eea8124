package browser

import (
	"cmp"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

const peopleJob = `job: people
description: Loads people, and keeps the rows that cannot be read.
flow:
- step: table
  tasklet: {sql: "create table if not exists person (id bigint primary key, name text, born date)"}
- step: load
  chunk:
    size: 2
    skip: 10
    reader: {csv: {path: people.csv, item: {id: int, name: string, born: date}}}
    writer: {table: person}
`

const people = "id,name,born\n1,Ada,1815-12-10\n2,Grace,1906-12-09\nthree,Edsger,1930-05-11\n4,Barbara,1939-11-07\n5,Tony,11.1.1934\n6,Frances,1932-08-04\n"

const nightlyJob = `job: nightly
description: Runs each night.
parameters:
  day: {type: date}
schedule: {cron: "0 2 * * *", timezone: Europe/Berlin, parameters: {day: "${schedule.date}"}}
flow:
- step: nothing
  tasklet: {sql: select 1}
`

const slowJob = `job: slow
description: Takes a while.
flow:
- step: wait
  tasklet: {shell: {command: [sleep, "600"]}}
- step: after
  tasklet: {sql: select 1}
`

const groupOfTasks = `{"tasks": [
  {"type": "shell", "payload": {"script": "exit 0"}},
  {"type": "shell", "payload": {"script": "echo no >&2; exit 3"}}
]}`

// A busy server: a page of each kind has something to show.
func busy(t testing.TB, dir, dbURL string) *served {
	t.Helper()
	files := paymentsFiles()
	files["jobs/people.yaml"], files["jobs/people.csv"] = peopleJob, people
	files["jobs/nightly.yaml"], files["jobs/slow.yaml"], files["tasks.json"] = nightlyJob, slowJob, groupOfTasks
	for _, name := range []string{"flow.yaml", "flow_child.yaml", "tasks.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", "jobs", name))
		require.NoError(t, err)
		files["jobs/"+name] = string(text)
	}
	s := newSceneIn(t, dir, dbURL, files)
	s.env = append(append(s.env, "SURFIN_TASKS_SHELL=true"), tokens()...)
	data, err := filepath.Abs("../example/birdstrikes/data/birdstrikes.csv")
	require.NoError(t, err)
	s.does(0, "run", "jobs/flow.yaml", "input="+data)
	s.does(0, "run", "jobs/people.yaml")
	s.does(0, "run", "jobs/tasks.yaml", "input="+data)
	s.does(0, "register", "jobs/nightly.yaml")
	s.does(1, "run", "jobs/payments.yaml")
	s.does(1, "restart", "5")
	s.does(0, "tasks", "submit", "tasks.json")
	s.start("run", "jobs/slow.yaml").await("step started")
	return s.serve("--worker")
}

// Every kind of page that a link leads to, from the first one on, with no or one value in its query.
func TestEveryPageIsCleanForAxeInLightAndDarkWideAndNarrow(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, dbURL string) {
		t.Parallel()
		server := busy(t, t.TempDir(), dbURL)
		for client, token := range map[string]string{"operator": annaToken, "viewer": wallToken} {
			t.Run(client, func(t *testing.T) {
				t.Parallel()
				b := newTab(t, server.at, client)
				b.signIn(token, "/executions/1")
				b.crawl(client == "operator")
			})
		}
	})
}

// crawl looks at a page of each kind, more or less closely.
func (b *tab) crawl(closely bool) {
	b.t.Helper()
	known := map[string]bool{}
	open := []string{"/", "/executions/1", "/executions/1/parts", "/executions/3/skips", "/executions/2", "/jobs/flow"}
	for _, path := range open {
		known[kind(path)] = true
	}
	for i := 0; i < len(open); i++ {
		b.open(open[i])
		switch {
		case !closely:
			b.lookAt(name(open[i]), []view{{"light", 360}})
		case strings.Contains(open[i], "?"):
			b.lookAt(name(open[i]), twoViews())
		default:
			b.look(name(open[i]))
		}
		for _, path := range evaluate[[]string](b, `[...document.querySelectorAll("a[href]:not([download])")].map(a => a.getAttribute("href"))`) {
			if strings.HasPrefix(path, "?") {
				at, _, _ := strings.Cut(open[i], "?")
				path = at + path
			}
			if strings.HasPrefix(path, "/") && !known[kind(path)] && !strings.Contains(kind(path), "&") {
				known[kind(path)] = true
				open = append(open, path)
			}
		}
	}
	b.t.Logf("%d pages: %s", len(open), strings.Join(open, " "))
}

func TestARefusalIsAPageThatSaysWhatIsNear(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, dbURL string) {
		t.Parallel()
		s := newScene(t, dbURL, paymentsFiles())
		s.does(1, "run", "jobs/payments.yaml")
		b := newTab(t, s.serve().at, "refusal")
		for _, c := range []struct {
			status     int64
			path, says string
		}{
			{404, "/executions/99", "execution 99"}, {404, "/jobs/payment", "payments"}, {404, "/executions/1/part", ""}, {404, "/nowhere", ""},
			{403, "/audit", ""}, {200, "/executions?status=FALED", "FAILED"},
		} {
			b.refusal(c.status, c.path)
			require.Contains(t, b.text("main"), c.says, c.path)
			b.look(name(c.path))
		}
	})
}

// kind is the same for all executions, jobs, and so on, and for all values of a query.
func kind(path string) string {
	to, err := url.Parse(path)
	if err != nil {
		return path
	}
	words := strings.Split(to.Path, "/")
	if len(words) > 2 {
		words[2] = "*"
	}
	var names []string
	for name := range to.Query() {
		if name != "tz" && name != "theme" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(words, "/") + "?" + strings.Join(names, "&")
}

// name is a page's in the name of its pictures.
func name(path string) string {
	return cmp.Or(strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(path, "-"), "-"), "now")
}
