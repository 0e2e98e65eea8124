package s3_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/contrib/s3"
	"github.com/surfin-batch/surfin/internal/place"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testtree"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

const (
	accessKey = "surfin"
	secretKey = "not-a-secret"
	tools     = "-modfile=../../tools/go.mod"
)

// gateway is versitygw on a folder: a store that speaks the protocol of S3.
type gateway struct {
	url    string
	client *minio.Core
	ca     string
}

var shared = sync.OnceValues(start) //nolint:gochecknoglobals // one server for all tests of the package

func TestMain(m *testing.M) {
	code := testdb.Main(m)
	if g, err := shared(); err == nil {
		g.stop()
	}
	os.Exit(code)
}

type running struct {
	gateway
	cmd *exec.Cmd
	dir string
}

func (r *running) stop() {
	r.cmd.Process.Kill() //nolint:errcheck // it may have ended
	r.cmd.Wait()         //nolint:errcheck // it was killed
	os.RemoveAll(r.dir)  //nolint:errcheck // a temporary folder
}

func start() (*running, error) {
	find := testtree.Command(context.Background(), "go", "tool", tools, "-n", "versitygw")
	find.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	path, err := find.Output()
	if err != nil {
		return nil, fmt.Errorf("build versitygw: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "surfin-s3-")
	if err != nil {
		return nil, err
	}
	store := filepath.Join(dir, "store")
	if err := os.Mkdir(store, 0o700); err != nil {
		return nil, err
	}
	cmd := testtree.Command(context.Background(), strings.TrimSpace(string(path)), "--port", address, "posix", store)
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+accessKey, "ROOT_SECRET_KEY="+secretKey)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	version, _ := testtree.Command(context.Background(), strings.TrimSpace(string(path)), "--version").Output() //nolint:errcheck // it is printed only
	fmt.Printf("S3: versitygw on %s: %s\n", address, strings.Join(strings.Fields(string(version)), " "))
	client, err := minio.NewCore(address, &minio.Options{Creds: credentials.NewStaticV4(accessKey, secretKey, ""), Region: "us-east-1", BucketLookup: minio.BucketLookupPath})
	if err != nil {
		return nil, err
	}
	return &running{gateway{url: "http://" + address, client: client}, cmd, dir}, nil
}

// bucket is a new one of a test.
func bucket(t testing.TB) (*running, string) {
	t.Helper()
	g, err := shared()
	require.NoError(t, err)
	name := "b" + strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(t.Name())), "-")
	name = strings.Trim(name[:min(len(name), 50)], "-") + fmt.Sprint(time.Now().UnixNano()%1e6)
	require.Eventually(t, func() bool {
		return g.client.MakeBucket(context.Background(), name, minio.MakeBucketOptions{}) == nil
	}, time.Minute, 50*time.Millisecond)
	return g, name
}

func (g gateway) settings() []place.Setting {
	return []place.Setting{{URL: "s3", Where: map[string]string{}, Values: map[string]string{
		"endpoint": g.url, "region": "us-east-1", "path_style": "true", "access_key": "${secret.id}", "secret_key": "${secret.key}", "ca": g.ca,
	}}}
}

// in returns a context with the place.
func (g gateway) in(t testing.TB) context.Context {
	t.Helper()
	c := s3.Components()[0]
	secrets := map[string]string{"id": accessKey, "key": secretKey}
	set, err := place.NewSet([]place.Scheme{{Name: c.Name, Config: c.Config, New: func(ctx context.Context, cfg any) (place.Place, error) {
		made, err := c.New(ctx, cfg, registry.BuildContext{})
		if err != nil {
			return nil, err
		}
		return made.(place.Place), nil
	}}}, g.settings(), func(_ context.Context, name string) (string, error) { return secrets[name], nil })
	require.NoError(t, err)
	return place.With(context.Background(), set)
}

func (g gateway) put(t testing.TB, bucket, key, text string) {
	t.Helper()
	_, err := g.client.Client.PutObject(t.Context(), bucket, key, strings.NewReader(text), int64(len(text)), minio.PutObjectOptions{})
	require.NoError(t, err)
}

// get returns an object's text, or "".
func (g gateway) get(t testing.TB, bucket, key string) string {
	t.Helper()
	body, _, _, err := g.client.GetObject(context.Background(), bucket, key, minio.GetObjectOptions{})
	if minio.ToErrorResponse(err).Code == "NoSuchKey" {
		return ""
	}
	require.NoError(t, err)
	defer body.Close()
	var text bytes.Buffer
	_, err = text.ReadFrom(body)
	require.NoError(t, err)
	return text.String()
}

func (g gateway) keys(t testing.TB, bucket, prefix string) (list []string) {
	t.Helper()
	for o := range g.client.Client.ListObjects(context.Background(), bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		require.NoError(t, o.Err)
		list = append(list, o.Key)
	}
	slices.Sort(list)
	return list
}

func (g gateway) uploads(t testing.TB, bucket string) (list []string) {
	t.Helper()
	for u := range g.client.ListIncompleteUploads(context.Background(), bucket, "", true) {
		require.NoError(t, u.Err)
		list = append(list, u.Key+" "+u.UploadID)
	}
	return list
}

func (g gateway) clear(t testing.TB, bucket string) {
	t.Helper()
	for _, key := range g.keys(t, bucket, "") {
		require.NoError(t, g.client.RemoveObject(context.Background(), bucket, key, minio.RemoveObjectOptions{}))
	}
	for u := range g.client.ListIncompleteUploads(context.Background(), bucket, "", true) {
		require.NoError(t, g.client.AbortMultipartUpload(context.Background(), bucket, u.Key, u.UploadID))
	}
}

// clean checks that there is nothing but these keys.
func (g gateway) clean(t testing.TB, bucket string, keys ...string) {
	t.Helper()
	require.Equal(t, keys, g.keys(t, bucket, ""))
	require.Empty(t, g.uploads(t, bucket))
}

func folder(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	return dir
}

func minioRemove() minio.RemoveObjectOptions { return minio.RemoveObjectOptions{} }
