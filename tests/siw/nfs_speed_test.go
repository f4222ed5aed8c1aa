package siw

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3/localfs"
)

var rounds = flag.Int("speed", 0, "how often Linux's client is measured with our server and with nfsd in another guest (SIW_GUESTS=2), in turn")

// TestSpeed measures Linux's client with our server and with nfsd in another guest: reads past the cache, stats and creates. Ours is not to
// be slower. -speed says how often.
func TestSpeed(t *testing.T) {
	if *rounds == 0 {
		t.Skip("-speed 5 measures")
	}
	installExercise(t)
	if out, err := kit("exec", "-g", "2", "nfsd-rdma").CombinedOutput(); err != nil {
		t.Skipf("there is no second guest (SIW_GUESTS=2): %v\n%s", err, out)
	}
	e := serveNFS(t, localfs.NewMemory(nil), nil, nil)
	load, _ := os.ReadFile("/proc/loadavg")
	out := mounted(t, e.mount(e.port(), "noac"), 300+600**rounds,
		"ours=$PWD && mkdir -p /mnt/nfsd && mount.nfs 10.99.0.3:/export /mnt/nfsd -o vers=3,rdma,port=20049,nolock,mountproto=tcp,noac",
		fmt.Sprintf("exercise -n %d speed $ours /mnt/nfsd", *rounds),
		"umount /mnt/nfsd")
	t.Logf("load %s\n%s", load, out)
	for _, ratio := range regexp.MustCompile(`in /mnt/\w{6}: .*ratio (\S+)`).FindAllStringSubmatch(out, -1) {
		if r, err := strconv.ParseFloat(ratio[1], 64); err != nil || r > 1 {
			t.Errorf("slower than nfsd: %s", ratio[0])
		}
	}
}
