package bind

import (
	"context"
	"errors"
	"os"
)

// Secrets finds the secrets that job files name, and masks each wherever it is shown or stored.
type Secrets interface {
	// Lookup's error contains no part of a secret; a method Cure returns the remedy.
	Lookup(ctx context.Context, name string) (string, error)
	// Give masks a value that was given for a name, and returns Lookup's result for it.
	Give(name, value string) (string, error)
}

// Given returns secrets with values given at a launch; others, which may be nil, has the rest.
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

func (g givenSecrets) Lookup(ctx context.Context, name string) (string, error) {
	if g.Secrets == nil {
		return "", errors.New("no secret store is configured")
	}
	if value, ok := g.values[name]; ok {
		return g.Give(name, value)
	}
	return g.Secrets.Lookup(ctx, name)
}

const maskedSecret = "***"

// With adds the secrets that the values may look up.
func (v *Values) With(ctx context.Context, secrets Secrets) *Values {
	v.Secret = func(name string) (string, error) {
		if secrets == nil {
			return "", errors.New("no secret store is configured")
		}
		return secrets.Lookup(ctx, name)
	}
	return v
}

func (v *Values) addSecret(head, name string) error {
	value := maskedSecret
	if v.Secret != nil {
		var err error
		if value, err = v.Secret(name); err != nil {
			return err
		}
	}
	v.Vars[head].(map[string]any)[name] = value
	return nil
}

// Guards returns the functions that keep secrets from processes and texts.
func Guards(secrets Secrets) (environ func() []string, hide func(what, value string)) {
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
