// Package site puts the API and the pages of the console together: for the server of the command, and for an
// application that mounts them.
//
// It imports internal/access, internal/api, internal/changes, internal/console, internal/operator and internal/wording.
package site

import (
	"net/http"

	"github.com/surfin-batch/surfin/internal/access"
	"github.com/surfin-batch/surfin/internal/api"
	"github.com/surfin-batch/surfin/internal/changes"
	"github.com/surfin-batch/surfin/internal/console"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
)

// Of returns the configuration of an API with the pages. Secrets are hidden; program begins the command lines that
// pages show.
func Of(c api.Config, secrets operator.Secrets, program string) api.Config {
	c.Mask, c.Changes = secrets.JSON, changes.New(c.Service.Changes, c.Log)
	c.Pages = func(guard *access.Guard, operations http.Handler) (http.Handler, error) {
		return console.New(guard, console.Config{
			Service: c.Service, Jobs: c.Jobs, Tasks: c.Tasks, Mask: secrets.Values, MaskJSON: secrets.JSON, Log: c.Log, Commands: wording.Commands{Program: program},
			Stream: "/v1/stream", Base: c.BasePath, Looks: c.Changes.Looks, Operations: operations,
		})
	}
	return c
}
