package batch

import (
	"os"

	"go.uber.org/dig"

	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

// Settings configure an application: databases, repository, leases.
type Settings = settings.Settings

// LoadSettings reads the environment (SURFIN_*, DATABASE_URL) over surfin.yaml in the working directory over
// the defaults.
func LoadSettings() (Settings, error) {
	dir, err := os.Getwd()
	if err != nil {
		return Settings{}, err
	}
	return settings.Load(settings.Source{Dir: dir, Environ: os.Environ()})
}

func rootCause(err error) error { return dig.RootCause(err) }
