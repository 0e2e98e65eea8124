package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
	"github.com/surfin-batch/surfin/pkg/batch/web"
)

type userKey struct{}

// signIn is the sign-in of the service, which your own replaces.
func signIn(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if password != "secret of "+user {
			w.Header().Set("WWW-Authenticate", `Basic realm="shop"`)
			http.Error(w, "sign in", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
	})
}

// operatorOf returns the user of a request, with the role for batch jobs. Other users have none.
func operatorOf(r *http.Request) (name string, role settings.Role) {
	switch name, _ = r.Context().Value(userKey{}).(string); name {
	case "anna":
		return name, settings.Operator
	case "support":
		return name, settings.Viewer
	}
	return name, ""
}

// shop is the service with the console of its jobs at /admin/batch/.
func shop(app *batch.App) (http.Handler, error) {
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", http.RedirectHandler("/orders", http.StatusSeeOther))
	console, err := web.Handler(app, "/admin/batch/", operatorOf)
	if err != nil {
		return nil, err
	}
	mux.Handle("/admin/batch/", console)
	return signIn(mux), nil
}

// The console in a service, with the service's own sign-in.
func ExampleHandler() {
	dir, done := testexample.Dir()
	defer done()
	ctx := context.Background()
	s, err := settings.Load(settings.Source{Dir: dir}) // or batch.LoadSettings()
	testexample.Check(err)
	billing := batch.NewJob("billing").Step("bill", batch.Do(func(context.Context, *batch.StepContribution) error { return nil }))
	app, err := batch.New(ctx, s, batch.Jobs(billing))
	testexample.Check(err)
	defer app.Close(ctx)
	testexample.Check(app.Prepare(ctx))
	handler, err := shop(app)
	testexample.Check(err)

	for _, user := range []string{"anna", "support", "guest"} {
		r := httptest.NewRequest(http.MethodGet, "/admin/batch/jobs/billing/run", nil)
		r.SetBasicAuth(user, "secret of "+user)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(user, w.Code)
	}
	// Output:
	// anna 200
	// support 403
	// guest 403
}
