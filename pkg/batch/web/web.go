// Package web mounts the console and the REST API in an application's own server, with the sign-in of the application.
// It is a package of its own, so that other programs compile no pages.
//
// It imports package batch, settings, and the packages of the server: api, operator and site.
package web

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"strings"

	"github.com/surfin-batch/surfin/internal/api"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/site"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

// Handler serves the console of the app's registered jobs at a path of the application's server, and the API below its
// v1/ (rule OP19):
//
//	handler, err := web.Handler(app, "/admin/batch/", userOf)
//	mux.Handle("/admin/batch/", handler)
//
// userOf returns the user of a request, whom the application has signed in, for roles and the audit. Without a name or a
// role the request is refused (403). It is called for each request, concurrently.
//
// The handler expects whole paths. Those from which http.StripPrefix has removed the path are served as well.
func Handler(app *batch.App, at string, userOf func(r *http.Request) (name string, role settings.Role)) (http.Handler, error) {
	base := strings.TrimSuffix(at, "/")
	switch {
	case app == nil || app.Service == nil || userOf == nil:
		return nil, errors.New("the console needs an App, and a function that returns the user of a request")
	case base != "" && (!strings.HasPrefix(base, "/") || base == "/" || path.Clean(base) != base || strings.ContainsAny(base, "{}?#% ")):
		return nil, fmt.Errorf("mount the console at %q: it is not a path such as /admin/batch/", at)
	}
	own, err := operator.SiteOf(app.Service)
	if err != nil {
		return nil, err
	}
	return api.New(site.Of(api.Config{
		Service: app.Service, Jobs: own.Jobs, Tasks: app.Tasks, Paths: own.Paths, UserOf: userOf, BasePath: base, Log: slog.Default(),
	}, own.Secrets, "surfin"))
}
