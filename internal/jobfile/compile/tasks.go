package compile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/surfin-batch/surfin/internal/jobfile/bind"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/step"
)

func payload(f *tree.File, s *tree.Step, v *bind.Values, n *yamlfile.Node) (any, error) {
	return bind.JsonTree(n, func(n *yamlfile.Node) (any, error) {
		value, err := bind.PayloadScalar(v, n, s.Tasks.Late[n])
		if err != nil {
			return nil, fmt.Errorf("%s: items: %w", f.Place(n), err)
		}
		return value, nil
	})
}

func payloads(f *tree.File, s *tree.Step, v *bind.Values) ([]json.RawMessage, error) {
	payloads := make([]json.RawMessage, 0, len(s.Tasks.Model.Items.List))
	for _, n := range s.Tasks.Model.Items.List {
		if !v.AtStep && s.Tasks.IsLate(n) {
			continue
		}
		value, err := payload(f, s, v, n)
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("%s: items: %w", f.Place(n), err)
		}
		payloads = append(payloads, text)
	}
	return payloads, nil
}

func readPayloads(ctx context.Context, reader item.Reader, of item.Type) (payloads []json.RawMessage, err error) {
	var documents payloadWriter
	writer, err := of.ToDocuments(&documents)
	if err != nil {
		return nil, err
	}
	component := reader.Component()
	if closer, ok := component.(item.Closer); ok {
		defer func() { err = errors.Join(err, closer.Close(context.WithoutCancel(ctx))) }()
	}
	if opener, ok := component.(item.Opener); ok {
		if err := opener.Open(ctx, nil); err != nil {
			return nil, err
		}
	}
	const atOnce = 1000
	items := reader.NewItems(atOnce)
	for ended := false; !ended; {
		items.Reset()
		err := reader.Fill(ctx, items, atOnce)
		if ended = err == io.EOF; err != nil && !ended { //nolint:errorlint // the end is io.EOF itself
			return nil, fmt.Errorf("item %d: %w", len(documents)+items.Len()+1, err)
		}
		if err := writer.Write(ctx, items); err != nil {
			return nil, err
		}
		if len(documents) > step.MaxTasks {
			break // the step refuses them
		}
	}
	return documents, nil
}

// payloadWriter keeps documents.
type payloadWriter []json.RawMessage

// WriteDocuments implements item.DocumentWriter.
func (w *payloadWriter) WriteDocuments(_ context.Context, docs [][]byte) error {
	for _, doc := range docs {
		*w = append(*w, bytes.Clone(doc))
	}
	return nil
}
