package s3_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testproxy"
)

const loadJob = `job: load
flow:
- step: load
  chunk:
    size: 2000
    reader: {csv: {path: 's3://%s/big.csv', item: {id: int, text: string}}}
    processor: {map: {only: true, id: item.id}}
    writer: {table: {name: big, create: true}}
`

// A large object is read over lines that end each 20 MB, by a process that is killed twice: each row once, and hardly a
// byte twice. BIG is its size in MB.
func TestABigObjectIsFetchedOnce(t *testing.T) {
	t.Parallel()
	const line = 1024
	size := int64(times("BIG", 64)) << 20
	rows := size / line
	g, bucket := bucket(t)
	in, out := io.Pipe()
	go func() {
		filler := strings.Repeat("x", line)
		for i := range rows {
			head := fmt.Sprintf("%d,", i)
			if i == 0 {
				head = "id,text\n" + head
			}
			io.WriteString(out, head+filler[:line-1-len(head)]+"\n") //nolint:errcheck // the reader fails, too
		}
		out.Close() //nolint:errcheck // likewise
	}()
	_, err := g.client.Client.PutObject(context.Background(), bucket, "big.csv", in, -1, minio.PutObjectOptions{PartSize: 16 << 20})
	require.NoError(t, err)
	proxy := testproxy.New(t, g.url)
	proxy.CutEach(min(20<<20, size/8))
	s := &site{t: t, gateway: g, bucket: bucket, db: testdb.EmptySQLite(t), job: fmt.Sprintf(loadJob, bucket), url: proxy.URL()}
	s.program, err = built()
	require.NoError(t, err)
	for kill := range int64(2) {
		var said bytes.Buffer
		cmd := s.command("")
		cmd.Stderr = &said
		require.NoError(t, cmd.Start())
		require.Eventually(t, func() bool { return proxy.Answered() > (kill+1)*size/3 }, 10*time.Minute, 5*time.Millisecond, &said)
		require.NoError(t, cmd.Process.Kill())
		cmd.Wait() //nolint:errcheck // it was killed
	}
	s.end("")
	require.LessOrEqual(t, proxy.Answered(), size+max(size/10, 24<<20)) // bytes that were on their way when it was killed
	t.Logf("%d of %d bytes were fetched", proxy.Answered(), size)
	db, err := sql.Open("sqlite", strings.TrimPrefix(s.db, "sqlite:"))
	require.NoError(t, err)
	defer db.Close()
	var count, different, last int64
	require.NoError(t, db.QueryRow("SELECT count(*), count(DISTINCT id), max(id) FROM big").Scan(&count, &different, &last))
	require.Equal(t, []int64{rows, rows, rows - 1}, []int64{count, different, last})
	s.gateway.clear(t, bucket)
}
