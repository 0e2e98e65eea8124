package source

import (
	"github.com/surfin-batch/surfin/internal/yamlfile"
)

// Included is a file that the job file includes, directly or through another one.
type Included struct {
	// Name is the job file's name for it.
	Name string
	From Source
	Doc  *yamlfile.Document
}
