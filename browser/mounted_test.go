package browser

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
	"github.com/surfin-batch/surfin/pkg/batch/web"
)

// Rule OP19: below a path of an application, with its sign-in.
func TestAMountedConsoleIsLiveUntilTheApplicationEndsTheSession(t *testing.T) {
	t.Parallel()
	set, err := settings.Load(settings.Source{Dir: t.TempDir(), Environ: []string{"DATABASE_URL=" + testdb.SQLite(t), "SURFIN_AUTO_MIGRATE=true"}})
	require.NoError(t, err)
	goes := make(chan struct{}, 3)
	bill := func(ctx context.Context, _ *batch.StepContribution) error {
		select {
		case <-goes:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	billing := batch.NewJob("billing").Step("bill", batch.TaskletOf(batch.TaskletFunc(bill), batch.NoTransaction()))
	app, err := batch.New(t.Context(), set, batch.Log(nil), batch.Jobs(billing))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, app.Close(context.Background())) })
	require.NoError(t, app.Prepare(t.Context()))
	var role atomic.Value
	role.Store(settings.Operator)
	console, err := web.Handler(app, "/admin/batch/", func(*http.Request) (string, settings.Role) { return "anna", role.Load().(settings.Role) }) //nolint:forcetypeassert // stored above
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("/admin/batch/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if role.Load() == settings.Role("out") {
			http.Redirect(w, r, "/sign-in", http.StatusSeeOther)
			return
		}
		console.ServeHTTP(w, r)
	}))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)

	b := newTab(t, server.URL, "mounted")
	b.open("/admin/batch/jobs/billing")
	b.click("main", "Run it")
	require.EqualValues(t, http.StatusOK, b.button("Run"))
	require.Equal(t, "/admin/batch/executions/1", b.path())
	b.do(stays())
	goes <- struct{}{}
	b.await(`document.stays && document.querySelector("h1").innerText === "Execution 1 of job billing completed"`)

	b.click("nav", "Now")
	b.refused = true
	for _, ended := range []struct {
		role settings.Role
		says string
	}{{"out", "The session is over"}, {"", "You may not see this page any more"}} {
		role.Store(settings.Operator)
		b.open("/admin/batch/")
		b.settle()
		role.Store(ended.role)
		goes <- struct{}{}
		_, err = app.Run(t.Context(), batch.RunRequest{Name: "billing", Again: true})
		require.NoError(t, err)
		b.await(`document.getElementById("live").innerText.startsWith("` + ended.says + `")`)
	}
}
