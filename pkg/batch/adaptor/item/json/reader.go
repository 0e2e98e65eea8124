package json

import (
	"fmt"

	"github.com/surfin-batch/surfin/internal/jsonfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// NewReader returns a reader of items of the type.
func NewReader(cfg ReaderConfig, item core.ItemType) (core.Reader, error) {
	item, err := itemOf(item)
	if err == nil {
		err = cfg.Validate()
	}
	if err != nil {
		return nil, fmt.Errorf("json: %w", err)
	}
	if cfg.MaxLine == 0 {
		cfg.MaxLine = DefaultMaxLine
	}
	return item.FromDocuments(jsonfile.NewArray(jsonfile.Config{
		Name: "json", Path: cfg.Path, Compression: cfg.Compression, MaxLine: int64(cfg.MaxLine),
	}, cfg.Items))
}
