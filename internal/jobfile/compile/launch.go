package compile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/surfin-batch/surfin/internal/confine"
	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/jobfile/bind"
	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/template"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/step"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// CheckLaunch decodes every config with the launch's values, so that a mistake refuses the launch
// before an execution exists.
func CheckLaunch(ctx context.Context, f *tree.File, secrets bind.Secrets, params core.Parameters) error {
	problems := f.Doc.NewCollector()
	checkSecrets(ctx, f, secrets, problems)
	if err := problems.Err(); err != nil {
		return err
	}
	for _, u := range f.Components() {
		bind.Config(f, u, bind.Launch(f, params).With(ctx, secrets).Confined(ctx, confine.From(ctx).Confinement(), nil), problems)
	}
	for _, s := range f.Steps {
		if s.Child != nil {
			bindChild(f, s.Child, params, problems)
		}
		if s.Tasks != nil {
			if _, err := payloads(f, s, bind.Launch(f, params)); err != nil {
				problems.Add(s.Tasks.Model.Items.Node, err.Error(), "")
			}
		}
	}
	return problems.Err()
}

func checkSecrets(ctx context.Context, f *tree.File, secrets bind.Secrets, problems *yamlfile.Collector) {
	v := (&bind.Values{}).With(ctx, secrets)
	for _, u := range tree.WithNested(f.Components()...) {
		for n, late := range u.Late {
			for _, h := range late.Holes {
				for _, path := range h.Prog.Vars() {
					if name, is := strings.CutPrefix(path, "secret."); is {
						if _, err := v.Secret(name); err != nil {
							problems.AddAt(n, h.Offset, "${"+h.Text+"}: "+err.Error(), cureOf(err))
						}
					}
					if name, is := strings.CutPrefix(path, "params."); is && f.IsSecret(name) {
						checkSecretParameter(f, v, name, n, h, problems)
					}
				}
			}
		}
	}
	for _, s := range f.Steps {
		if s.Child != nil && s.Child.File != nil {
			checkSecrets(ctx, s.Child.File, secrets, problems)
		}
	}
}

func checkSecretParameter(f *tree.File, v *bind.Values, name string, n *yamlfile.Node, h template.Hole, problems *yamlfile.Collector) {
	_, err := v.Secret(name)
	if err == nil {
		return
	}
	text := "${" + h.Text + "}: " + err.Error()
	if cureOf(err) != "" {
		text = fmt.Sprintf("${%s}: the secret parameter %s is not given; it is not stored, so each run and restart needs it", h.Text, name)
	}
	problems.AddAt(n, h.Offset, text, language.SecretParameterHint(name))
}

func cureOf(err error) string {
	var curable interface{ Cure() string }
	if errors.As(err, &curable) {
		return curable.Cure()
	}
	return ""
}

// ExclusiveKey returns the key shared by launches that must not run at the same time; "" means only
// its own instance.
func ExclusiveKey(f *tree.File, params core.Parameters) (core.ExclusiveKey, error) {
	switch m := f.Model.Exclusive; {
	case m == nil || m.Text == language.ExclusiveInstance:
		return "", nil
	case m.Text == language.ExclusiveJob:
		return core.ExclusiveJob, nil
	}
	x, err := f.Exclusive.Eval(bind.Launch(f, params).Vars)
	if err == nil {
		key := core.ExclusiveBy(template.Text(x))
		if err = key.Check(); err == nil {
			return key, nil
		}
	}
	return "", fmt.Errorf("%s: exclusive: %w", f.Place(f.Model.Exclusive.Node), err)
}

func childParameters(f *tree.File, child *tree.Child, view *core.View) (core.Parameters, error) {
	given := map[string]string{}
	v := bind.View(f, view)
	for _, p := range child.Parameters {
		value, ok, err := bind.ChildValue(f, v, p)
		if err != nil {
			return core.Parameters{}, fmt.Errorf("%s: parameter %s: %w", f.Place(p.Node), p.Spec.Name, err)
		}
		if ok {
			given[p.Spec.Name] = value
		}
	}
	return job.ValidateParameters(child.File.Specs, given)
}

func bindChild(f *tree.File, child *tree.Child, params core.Parameters, problems *yamlfile.Collector) {
	v := bind.Launch(f, params)
	for _, p := range child.Parameters {
		if p.Late.AtStep || child.File == nil {
			continue
		}
		text, given, err := bind.ChildValue(f, v, p)
		if err == nil && given {
			var x any
			if x, err = p.Spec.Parse(text); err == nil {
				err = job.CheckParameter(p.Spec, x)
			}
		}
		if err != nil {
			problems.Add(p.Node, p.Spec.Name+": "+err.Error(), "")
		}
	}
}

func increment(f *tree.File) model.Incrementer {
	for _, spec := range f.Specs {
		if spec.Name != f.Model.Incrementer {
			continue
		}
		if spec.Type == core.TypeDate {
			return job.NextDay(spec.Name)
		}
		return job.Count(spec.Name)
	}
	return nil
}

func childConfinement(ctx context.Context, f *tree.File, child *tree.Child, view *core.View) *core.Confinement {
	own := view.Job.Confinement
	if own == nil {
		return nil
	}
	v := bind.View(f, view).Confined(ctx, own, nil)
	var given []string
	for _, p := range child.Parameters {
		if v.Held(p.Late.Holes) {
			given = append(given, p.Spec.Name)
		}
	}
	if len(given) == 0 {
		return nil
	}
	return &core.Confinement{Roots: own.Roots, Data: own.Data, Given: given}
}

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

type payloadWriter []json.RawMessage

func (w *payloadWriter) WriteDocuments(_ context.Context, docs [][]byte) error {
	for _, doc := range docs {
		*w = append(*w, bytes.Clone(doc))
	}
	return nil
}
