package s3

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"reflect"
	"sync"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/assembly"
	"github.com/surfin-batch/surfin/internal/place/objects"
	"github.com/surfin-batch/surfin/internal/urlpath"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Module adds the place to an application.
func Module() fx.Option { return assembly.Components(Components()...) }

// Components are the place.
func Components() []registry.Component {
	return []registry.Component{{
		Kind: urlpath.Kind, Name: "s3",
		Summary: "Objects of Amazon S3, and of stores that speak its protocol.",
		Doc: "Readers, writers, partitioners, the tasklets `files` and `wait_file`, and `surfin infer`, `init` and `copy` take s3://bucket/key as they take paths. " +
			"Without credentials in surfin.yaml, AWS_ variables, the shared credentials file, and the instance or pod are asked (rule OB1).",
		Example: "places:\n  s3: {endpoint: 'https://s3.example.com', region: eu-central-1, access_key: '${secret.s3_id}', secret_key: '${secret.s3_key}'}\n",
		Config:  reflect.TypeFor[config](),
		New:     func(_ context.Context, cfg any, _ registry.BuildContext) (any, error) { return open(*cfg.(*config)) },
	}}
}

type config struct {
	Endpoint  string `key:"endpoint" doc:"URL of the store, without bucket" default:"https://s3.amazonaws.com"`
	Region    string `key:"region" doc:"region of the buckets; empty asks the store"`
	PathStyle bool   `key:"path_style" doc:"the bucket is part of the path, not of the host"`
	CA        string `key:"ca" doc:"file of certificates (PEM) instead of the system's"`
	AccessKey string `key:"access_key" doc:"ID of the access key, best as ${secret.NAME}"`
	SecretKey string `key:"secret_key" secret:"true" doc:"secret of the access key, as ${secret.NAME}"`
	Token     string `key:"session_token" secret:"true" doc:"token of temporary credentials, as ${secret.NAME}"`
	Profile   string `key:"profile" doc:"profile of the shared credentials file"`
}

// Validate checks the keys of surfin.yaml.
func (c config) Validate() error {
	if c.Endpoint != "" {
		u, err := url.Parse(c.Endpoint)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.Path != "" && u.Path != "/" || u.User != nil {
			return errors.New("endpoint: a URL such as https://s3.example.com is expected, without user and path")
		}
	}
	if (c.AccessKey == "") != (c.SecretKey == "") {
		return errors.New("access_key and secret_key belong together")
	}
	if c.AccessKey != "" && c.Profile != "" {
		return errors.New("profile: access_key says already who this is")
	}
	return nil
}

const defaultEndpoint = "https://s3.amazonaws.com"

func open(c config) (any, error) {
	if c.Endpoint == "" {
		c.Endpoint = defaultEndpoint
	}
	at, err := url.Parse(c.Endpoint)
	if err != nil {
		return nil, err
	}
	secure := at.Scheme == "https"
	transport, err := minio.DefaultTransport(secure)
	if err != nil {
		return nil, err
	}
	if c.CA != "" {
		pool, err := certificates(c.CA)
		if err != nil {
			return nil, fmt.Errorf("place s3: ca: %w", err)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	lookup := minio.BucketLookupAuto
	if c.PathStyle {
		lookup = minio.BucketLookupPath
	}
	core, err := minio.NewCore(at.Host, &minio.Options{Creds: c.credentials(), Secure: secure, Region: c.Region, BucketLookup: lookup, Transport: transport})
	if err != nil {
		return nil, fmt.Errorf("place s3: %w", err)
	}
	var mu sync.Mutex
	buckets := map[string]objects.Store{}
	return objects.New(func(name string) objects.Store {
		mu.Lock()
		defer mu.Unlock()
		if buckets[name] == nil {
			buckets[name] = &bucket{core: core, name: name}
		}
		return buckets[name]
	}), nil
}

func (c config) credentials() *credentials.Credentials {
	switch {
	case c.AccessKey != "":
		return credentials.NewStaticV4(c.AccessKey, c.SecretKey, c.Token)
	case c.Profile != "":
		return credentials.NewFileAWSCredentials("", c.Profile)
	}
	return credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{}})
}

func certificates(path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate", path)
	}
	return pool, nil
}
