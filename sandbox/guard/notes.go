package guard

import (
	"fmt"
	"sync"
	"time"
)

// notes tells the person what was withheld, and not more than a person can read: a server
// chooses how often it misbehaves.
type notes struct {
	say func(string)
	now func() time.Time

	mu      sync.Mutex
	left    float64
	since   time.Time
	unheard int
}

const (
	// noteBurst is how many notes come at once, noteRate how many each second after that.
	noteBurst = 20
	noteRate  = 1.0
)

func (n *notes) tell(text string) {
	n.mu.Lock()
	now := n.now()
	if n.since.IsZero() {
		n.left = noteBurst
	} else {
		n.left = min(noteBurst, n.left+now.Sub(n.since).Seconds()*noteRate)
	}
	n.since = now
	if n.left < 1 {
		n.unheard++
		n.mu.Unlock()
		return
	}
	n.left--
	unheard := n.unheard
	n.unheard = 0
	n.mu.Unlock()
	if unheard > 0 {
		text += fmt.Sprintf(" (and %d notes before this one that came too fast)", unheard)
	}
	n.say(text)
}
