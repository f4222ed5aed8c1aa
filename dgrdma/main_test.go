package dgrdma

import (
	"testing"

	"github.com/dgrdma/dgrdma/tests/fixture"
)

func TestMain(m *testing.M) {
	fixture.CollectSeldom()
	fixture.EndHangs()
	m.Run()
}
