package json

import (
	"context"
	"errors"
	"reflect"

	"github.com/surfin-batch/surfin/internal/jsonfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

func writer(c registry.Component, make func(writerConfig, registry.BuildContext) (item.Writer, error)) registry.Component {
	c.Kind = registry.KindWriter
	c.Doc = "The file is published only when the step is complete. Each chunk costs one fsync."
	c.Config = reflect.TypeFor[writerConfig]()
	c.Types = func(cfg any, in item.Type) (item.Type, error) {
		w := cfg.(*writerConfig)
		if c.Name == "json" && w.Append {
			return nil, errAppend()
		}
		if c.Name == "json" && w.Together {
			return nil, errTogether()
		}
		_, err := newLayout(w, in)
		return in, err
	}
	c.New = func(_ context.Context, cfg any, b registry.BuildContext) (any, error) {
		return make(*cfg.(*writerConfig), b)
	}
	return c
}

func errAppend() error {
	return &registry.ConfigError{Key: "append", Err: errors.New("a JSON array has an end, and nothing can follow it: use jsonl, which has one value per line")}
}

func errTogether() error {
	return &registry.ConfigError{Key: "together", Err: errors.New("parts of a JSON array are not arrays: use jsonl, which has one value per line")}
}

func fileOf(cfg writerConfig) jsonfile.WriterConfig {
	return jsonfile.WriterConfig{Path: cfg.Path, Compression: cfg.Compression, Encoding: cfg.Encoding, Append: cfg.Append, Together: cfg.Together}
}

func newWriter(cfg writerConfig, b registry.BuildContext, file *jsonfile.Writer) (item.Writer, error) {
	l, err := newLayout(&cfg, b.In)
	if err != nil {
		return nil, err
	}
	if l == nil {
		return b.In.ToDocuments(file)
	}
	return b.In.ToDocuments(&nesting{Writer: file, layout: l})
}
