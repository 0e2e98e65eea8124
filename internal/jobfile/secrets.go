package jobfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/surfin-batch/surfin/internal/yamlfile"
)

// Secrets finds the secrets that job files name. It masks each secret that it found wherever a text with it
// is shown or stored.
type Secrets interface {
	// Lookup returns the secret of a name. Its error contains no part of a secret; if it has a method Cure,
	// that returns the remedy.
	Lookup(ctx context.Context, name string) (string, error)
	// Give masks a value that was given for a name, and returns the result of Lookup for it.
	Give(name, value string) (string, error)
}

// Given returns secrets, some of them given at a launch as the values of secret parameters. The rest come
// from others, which may be nil.
func Given(values map[string]string, others Secrets) Secrets {
	if len(values) == 0 {
		return others
	}
	return givenSecrets{values, others}
}

type givenSecrets struct {
	values map[string]string
	Secrets
}

// Lookup returns a given secret, else the one of others.
func (g givenSecrets) Lookup(ctx context.Context, name string) (string, error) {
	if g.Secrets == nil {
		return "", errors.New("this application has no secrets, which it could mask")
	}
	if value, ok := g.values[name]; ok {
		return g.Give(name, value)
	}
	return g.Secrets.Lookup(ctx, name)
}

// maskedSecret stands for a secret in compared and shown values.
const maskedSecret = "***"

func (v *values) with(ctx context.Context, secrets Secrets) *values {
	v.secret = func(name string) (string, error) {
		if secrets == nil {
			return "", errors.New("this application has no secrets")
		}
		return secrets.Lookup(ctx, name)
	}
	return v
}

// addSecret adds a secret that an expression names: secret.NAME or params.NAME.
func (v *values) addSecret(head, name string) error {
	value := maskedSecret
	if v.secret != nil {
		var err error
		if value, err = v.secret(name); err != nil {
			return err
		}
	}
	v.vars[head].(map[string]any)[name] = value
	return nil
}

// checkSecrets reports missing secrets, including those that only a later step or a child job needs.
func (f *fileDef) checkSecrets(ctx context.Context, secrets Secrets, problems *yamlfile.Collector) {
	v := (&values{}).with(ctx, secrets)
	for _, u := range withNested(f.components()...) {
		for n, late := range u.late {
			for _, h := range late.holes {
				for _, path := range h.prog.Vars() {
					if name, is := strings.CutPrefix(path, "secret."); is {
						if _, err := v.secret(name); err != nil {
							problems.AddAt(n, h.offset, "${"+h.text+"}: "+err.Error(), cureOf(err))
						}
					}
					if name, is := strings.CutPrefix(path, "params."); is && f.isSecret(name) {
						f.checkSecretParameter(v, name, n, h, problems)
					}
				}
			}
		}
	}
	for _, s := range f.steps {
		if s.child != nil && s.child.file != nil {
			s.child.file.checkSecrets(ctx, secrets, problems)
		}
	}
}

// checkSecretParameter reports a secret parameter without a value.
func (f *fileDef) checkSecretParameter(v *values, name string, n *yamlfile.Node, h hole, problems *yamlfile.Collector) {
	_, err := v.secret(name)
	if err == nil {
		return
	}
	text := "${" + h.text + "}: " + err.Error()
	if cureOf(err) != "" {
		text = fmt.Sprintf("${%s}: the secret parameter %s is not given; it is not stored, so each run and restart needs it", h.text, name)
	}
	problems.AddAt(n, h.offset, text, secretParameterHint(name))
}

func cureOf(err error) string {
	var curable interface{ Cure() string }
	if errors.As(err, &curable) {
		return curable.Cure()
	}
	return ""
}

// guards returns the functions that keep secrets from processes and from texts, as far as the application has
// them.
func guards(secrets Secrets) (environ func() []string, hide func(what, value string)) {
	if given, is := secrets.(givenSecrets); is {
		secrets = given.Secrets
	}
	if v, is := secrets.(interface {
		Environ(environ []string) []string
	}); is {
		environ = func() []string { return v.Environ(os.Environ()) }
	}
	if v, is := secrets.(interface {
		Learn(what, value string, names ...string)
	}); is {
		hide = func(what, value string) { v.Learn(what, value) }
	}
	return environ, hide
}
