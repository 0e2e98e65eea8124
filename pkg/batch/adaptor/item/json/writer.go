package json

import (
	"github.com/surfin-batch/surfin/internal/jsonfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// NewWriter returns a writer of items of the type use.In. The file belongs to
// use.Attempt (rule C15b).
func NewWriter(cfg WriterConfig, use registry.BuildContext) (core.Writer, error) {
	return use.In.ToDocuments(jsonfile.NewArrayWriter(jsonfile.WriterConfig{Path: cfg.Path, Compression: cfg.Compression}, use))
}
