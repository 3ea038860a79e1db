//go:build long

package replay_test

// drawnCaptures is how many captures TestHealthOfDrawn draws.
const drawnCaptures = 10_000

// eachJudged: TestSecondOpinion has every scenario judged.
const eachJudged = 1
