package siw

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/rpc"
)

// crc returns the line of shell that has siw insist on checksums, or not.
func crc(on bool) string {
	value := 0
	if on {
		value = 1
	}
	return fmt.Sprintf("echo %d > /sys/module/siw/parameters/mpa_crc_required", value)
}

// TestLinuxMountsOurServer checks what Linux's client does with files of our server, over sizes of READ and WRITE, with and without
// checksums: odd offsets and lengths past the cache (LX-22), what chance says, and names.
func TestLinuxMountsOurServer(t *testing.T) {
	installExercise(t)
	t.Cleanup(func() { guest(t, crc(false)) })
	eachFS(t, func(t *testing.T, fs nfs3.FS) {
		for _, size := range []int{4 << 10, 64 << 10, 1 << 20} {
			for _, checked := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d,crc=%v", size, checked), func(t *testing.T) {
					e := serveNFS(t, fs, &rpc.ServerOptions{NoCRC: !checked}, nil)
					out := mounted(t, crc(checked)+"\n"+e.mount(e.port(), fmt.Sprintf("rsize=%d,wsize=%d", size, size)), 300,
						"exercise odd odd",
						fmt.Sprintf("exercise -seed %d -n 300 random random", *seed),
						"mkdir d && echo x > a && mv a b && ln b c && ln -s d l && readlink l && ls -l && rm -rf *")
					if !strings.Contains(out, "done\nd\n") {
						t.Error(out)
					}
				})
			}
		}
	})
}

// TestLinuxWithManyFiles checks that many small files of one directory, whose list is longer than a reply (LX-24, LX-25), are made, listed,
// read, renamed and removed by Linux's client, by eight goroutines at once, and that a tree of files is the same after cp -r.
func TestLinuxWithManyFiles(t *testing.T) {
	installExercise(t)
	eachFS(t, func(t *testing.T, fs nfs3.FS) {
		e := serveNFS(t, fs, nil, nil)
		mounted(t, e.mount(e.port(), ""), 300+*manyFiles/5,
			fmt.Sprintf("exercise -n %d files .", *manyFiles),
			fmt.Sprintf("rm -rf /tmp/tree && exercise -n %d tree /tmp && (cd /tmp/tree && find . -type f | xargs sha256sum > /tmp/sums)", *manyFiles/10),
			"cp -r /tmp/tree copy && echo 3 > /proc/sys/vm/drop_caches",
			"(cd copy && sha256sum -c /tmp/sums > /tmp/checked) || { grep -v ': OK$' /tmp/checked; exit 1; }",
			"cp -r copy again && echo 3 > /proc/sys/vm/drop_caches",
			"(cd again && sha256sum -c /tmp/sums > /tmp/checked) || { grep -v ': OK$' /tmp/checked; exit 1; }",
			"rm -rf copy again /tmp/tree")
	})
}

// TestLinuxByChance checks that a file is what a model is after what chance says: reads, writes and truncations, through the cache and
// past it (-operations says how many).
func TestLinuxByChance(t *testing.T) {
	installExercise(t)
	eachFS(t, func(t *testing.T, fs nfs3.FS) {
		e := serveNFS(t, fs, nil, nil)
		t.Logf("seed %d", *seed)
		mounted(t, e.mount(e.port(), "rsize=65536,wsize=32768"), 300+*operations/20, fmt.Sprintf("exercise -seed %d -n %d random file", *seed, *operations))
	})
}
