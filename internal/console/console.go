package console

import (
	"context"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/access"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/operator/catalog"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/internal/wording"
)

// Config configures the console.
type Config struct {
	Service *operator.Service
	Jobs    *catalog.Catalog
	Tasks   *runtime.TaskService
	// Mask hides secrets in a text; may be nil.
	Mask func(text string) string
	// MaskJSON hides secrets in a JSON document, which stays valid; may be nil.
	MaskJSON func(document []byte) []byte
	// Commands writes the command lines that pages show.
	Commands wording.Commands
	// Stream is the address of the API's stream of changes; empty means that pages do not follow.
	Stream string
	// Base is the path of the console below its host, such as /surfin; empty means /.
	Base string
	// Operations has the operations of the API, for admitted requests; nil means that pages are only read.
	Operations http.Handler
	// Log: nil means slog.Default().
	Log *slog.Logger
	Now func() time.Time
	// Looks counts the looks for changes that are over; nil means that nobody looks.
	Looks func() int64
}

type console struct {
	Config
	guard  *access.Guard
	mux    *http.ServeMux
	assets *assets
	pages  map[string]*template.Template
	shared *shared[*rendering]
	gzips  *gzips
}

// New returns the handler of the pages, of the sign-in and of the static files, with the clients and
// rates of the guard.
func New(guard *access.Guard, config Config) (http.Handler, error) {
	c, err := newConsole(guard, config)
	if err != nil {
		return nil, err
	}
	for _, r := range slices.Concat(routes(), downloads()) {
		c.mux.HandleFunc("GET "+r.pattern, func(w http.ResponseWriter, req *http.Request) { c.serve(w, req, r) })
	}
	if config.Operations != nil {
		for _, a := range acts() {
			c.mux.HandleFunc("GET "+a.pattern, func(w http.ResponseWriter, req *http.Request) { c.serveAct(w, req, a) })
			c.mux.HandleFunc("POST "+a.pattern, func(w http.ResponseWriter, req *http.Request) { c.serveAct(w, req, a) })
		}
	}
	c.mux.HandleFunc("GET /static/{name}", c.assets.serve)
	signIns := guard.SignIns(c.signIn)
	pages := guard.Protect(access.Room{Name: "the console", Enter: c, Refuse: c.refuse, Open: isStatic})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if signIns != nil && access.IsSignIn(r.URL.Path) {
			signIns.ServeHTTP(w, r)
			return
		}
		pages.ServeHTTP(w, r)
	}), nil
}

func newConsole(guard *access.Guard, config Config) (*console, error) {
	if config.Service == nil || config.Jobs == nil || config.Tasks == nil {
		return nil, errors.New("the console needs a service, a catalog of jobs and a service of tasks")
	}
	if config.Mask == nil {
		config.Mask = func(text string) string { return text }
	}
	if config.Commands.Program == "" {
		config.Commands.Program = "surfin"
	}
	if config.Log == nil {
		config.Log = slog.Default()
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	c := &console{Config: config, guard: guard, mux: http.NewServeMux(), shared: newShared[*rendering](config.Now, config.Looks), gzips: newGzips()}
	var err error
	if c.assets, err = newAssets(config.Base); err != nil {
		return nil, err
	}
	if c.pages, err = c.templates(); err != nil {
		return nil, err
	}
	return c, nil
}

// isStatic reports requests of files that every copy of the program has: a refusal is a page as well.
func isStatic(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/static/") }

type route struct {
	pattern string
	// section is the entry of the navigation that is marked.
	section string
	// name is of its template.
	name string
	show func(*visit) (*page, error)
}

// routes are all pages. Tests walk over them.
func routes() []route {
	return []route{
		{"/{$}", "now", "now", listPage(ofList.now)},
		{"/jobs", "jobs", "jobs", listPage(ofList.jobs)},
		{"/jobs/{job}", "jobs", "job", jobPage(ofJob.job)},
		{"/executions", "executions", "executions", listPage(ofList.executions)},
		{"/executions/{execution}", "executions", "execution", executionPage(ofExecution.execution)},
		{"/executions/{execution}/parts", "executions", "parts", executionPage(ofExecution.parts)},
		{"/executions/{execution}/timeline", "executions", "timeline", executionPage(ofExecution.timeline)},
		{"/executions/{execution}/throughput", "executions", "throughput", executionPage(ofExecution.throughput)},
		{"/executions/{execution}/skips", "executions", "skips", executionPage(ofExecution.skips)},
		{"/executions/{execution}/log", "executions", "log", executionPage(ofExecution.log)},
		{"/executions/{execution}/definition", "executions", "definition", executionPage(ofExecution.definition)},
		{"/executions/{execution}/results", "executions", "results", executionPage(ofExecution.results)},
		{"/executions/{execution}/audit", "executions", "changes", executionPage(ofExecution.changes)},
		{"/executions/{execution}/tasks", "executions", "steptasks", executionPage(ofExecution.stepTasks)},
		{"/executions/{execution}/compare", "executions", "compare", executionPage(ofExecution.compare)},
		{"/skips", "skips", "skipgroups", listPage(ofList.skipGroups)},
		{"/skips/{skip}", "executions", "skip", executionPage(ofExecution.skip)},
		{"/schedules", "schedules", "schedules", jobPage(ofJob.schedules)},
		{"/schedules/{job}", "schedules", "times", jobPage(ofJob.times)},
		{"/workers", "workers", "workers", workPage(ofWork.workers)},
		{"/tasks", "tasks", "tasks", workPage(ofWork.tasks)},
		{"/tasks/{task}", "tasks", "task", workPage(ofWork.task)},
		{"/tasks/{task}/log", "tasks", "tasklog", workPage(ofWork.taskLog)},
		{"/groups", "groups", "groups", workPage(ofWork.groups)},
		{"/groups/{group}", "groups", "group", workPage(ofWork.group)},
		{"/events", "events", "events", listPage(ofList.events)},
		{"/audit", "audit", "audit", listPage(ofList.audit)},
		{"/settings", "settings", "settings", listPage(ofList.settings)},
		{"/find", "", "find", listPage(ofList.find)},
	}
}

// downloads are the files that a browser stores. Their path is the one of the page with the same data.
func downloads() []route {
	return []route{
		{"/executions/{execution}/report.html", "executions", "execution", downloadOf(download.reportFile)},
		{"/executions/{execution}/log.txt", "executions", "log", downloadOf(download.logFile)},
		{"/executions/{execution}/skips.jsonl", "executions", "skips", downloadOf(download.skipsToEdit)},
		{"/executions/{execution}/skips.csv", "executions", "skips", downloadOf(download.skipsTable)},
		{"/executions/{execution}/definition.txt", "executions", "definition", downloadOf(download.definitionFile)},
		{"/skips/{skip}/item.txt", "executions", "skip", downloadOf(download.itemFile)},
	}
}

// isDownload reports whether a path ends like a file's.
func isDownload(r *http.Request) bool {
	return slices.ContainsFunc(downloads(), func(d route) bool { return path.Base(d.pattern) == path.Base(r.URL.Path) })
}

// downloadTime is the time that a download may take.
const downloadTime = 15 * time.Minute

// The pages in groups.
type (
	ofExecution struct{ *visit }
	download    struct{ ofExecution }
	ofList      struct{ *visit }
	ofJob       struct{ *visit }
	ofWork      struct{ *visit }
)

func executionPage(show func(ofExecution) (*page, error)) func(*visit) (*page, error) {
	return func(v *visit) (*page, error) { return show(ofExecution{v}) }
}

func downloadOf(show func(download) (*page, error)) func(*visit) (*page, error) {
	return func(v *visit) (*page, error) { return show(download{ofExecution{v}}) }
}

func listPage(show func(ofList) (*page, error)) func(*visit) (*page, error) {
	return func(v *visit) (*page, error) { return show(ofList{v}) }
}

func jobPage(show func(ofJob) (*page, error)) func(*visit) (*page, error) {
	return func(v *visit) (*page, error) { return show(ofJob{v}) }
}

func workPage(show func(ofWork) (*page, error)) func(*visit) (*page, error) {
	return func(v *visit) (*page, error) { return show(ofWork{v}) }
}

// answering returns the context of a request, as access.Answering does. Those who wait for a shared rendering do not check
// the database: the rendering does, and a hundred of them would ask it a hundred times as often.
func (c *console) answering(r *http.Request, to route) (context.Context, func()) {
	switch {
	case isFragment(r) && to.isWatched():
		return context.WithTimeout(r.Context(), access.RequestTime)
	case isDownload(r):
		return access.AnsweringFor(r.Context(), downloadTime, c.Service.CheckDatabase)
	}
	return access.Answering(r.Context(), c.Service.CheckDatabase)
}

// ServeHTTP implements http.Handler, for admitted requests.
func (c *console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, pattern := c.mux.Handler(r); pattern == "" {
		c.serve(w, r, route{show: (*visit).unknown})
		return
	}
	c.mux.ServeHTTP(w, r)
}
