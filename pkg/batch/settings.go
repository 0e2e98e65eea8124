package batch

import (
	"os"

	"go.uber.org/dig"

	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

// Settings configure an application apart from its job files: databases, repository, leases.
// LoadSettings reads them like the command.
type Settings = settings.Settings

// LoadSettings reads the settings like the command: the environment (SURFIN_*, DATABASE_URL) over
// surfin.yaml in the working directory over the defaults.
func LoadSettings() (Settings, error) {
	dir, err := os.Getwd()
	if err != nil {
		return Settings{}, err
	}
	return settings.Load(settings.Source{Dir: dir, Environ: os.Environ()})
}

// rootCause returns the error of a constructor without fx's path to it.
func rootCause(err error) error { return dig.RootCause(err) }
