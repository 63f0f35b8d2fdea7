"""The part of CloudWatch Logs that training jobs need: streams, pages, and lines that arrive late."""
import threading
import time

GROUP = '/aws/sagemaker/TrainingJobs'
PAGE_BYTES, EVENT_BYTES = 1 << 20, 1 << 18


class Trouble(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Logs:
    def __init__(self):
        self.lock = threading.Lock()
        self.streams = {}      # name -> [(ms when said, ms when it can be read, text)…]
        self.delay_s = 0.0     # from the time of a line until it can be read
        self.page_events = 10000
        self.empty_pages = False   # every other page is empty and not the last, as AWS permits

    def create(self, name):
        with self.lock:
            self.streams.setdefault(name, [])

    def say(self, name, text):
        """Adds a line to a stream. Empty lines are lost, because no event is empty."""
        now = time.time() * 1000
        for at in range(0, len(text), EVENT_BYTES):
            with self.lock:
                self.streams[name].append((int(now), int(now + self.delay_s * 1000), text[at:at + EVENT_BYTES]))

    def _visible(self, name, start, end):
        now = time.time() * 1000
        return [event for event in self.streams[name] if event[1] <= now and (start or 0) <= event[0] < (end or 1 << 62)]

    def _check(self, request):
        if (request.get('logGroupName') or request.get('logGroupIdentifier', '').split(':')[-1]) != GROUP or not self.streams:
            raise Trouble('ResourceNotFoundException', 'the specified log group does not exist')

    def DescribeLogStreams(self, request):
        self._check(request)
        with self.lock:
            names = sorted(name for name in self.streams if name.startswith(request.get('logStreamNamePrefix', '')))
            if request.get('orderBy') == 'LastEventTime':
                if 'logStreamNamePrefix' in request:
                    raise Trouble('InvalidParameterException', 'no prefix where streams are ordered by their last event')
                names.sort(key=lambda name: self.streams[name][-1][0] if self.streams[name] else 0)
            if request.get('descending'):
                names.reverse()
            first = int(request.get('nextToken', 's/0')[2:])
            page = names[first:first + request.get('limit', 50)]
            reply = {'logStreams': [{'logStreamName': name, 'storedBytes': 0, **(
                {'firstEventTimestamp': self.streams[name][0][0], 'lastEventTimestamp': self.streams[name][-1][0]}
                if self.streams[name] else {})} for name in page]}
        if first + len(page) < len(names):
            reply['nextToken'] = f's/{first + len(page)}'
        return reply

    def GetLogEvents(self, request):
        self._check(request)
        name = request['logStreamName']
        with self.lock:
            if name not in self.streams:
                raise Trouble('ResourceNotFoundException', 'the specified log stream does not exist')
            events = self._visible(name, request.get('startTime'), request.get('endTime'))
        limit = min(request.get('limit', 10000), self.page_events)
        token = request.get('nextToken', '')
        if token[:2] not in ('', 'f/', 'b/'):
            raise Trouble('InvalidParameterException', 'the token is not one of this service')
        where, _, turn = token[2:].partition('.')
        if token.startswith('b/') or not token and not request.get('startFromHead'):
            last = int(where) if token else len(events)
            page = events[max(0, last - limit):last]
            first = last - len(page)
        else:
            first = int(where or 0)
            page = self._cut(events[first:first + limit])
        if self.empty_pages and page and not turn:
            return {'events': [], 'nextForwardToken': f'f/{first}.1', 'nextBackwardToken': f'b/{first}'}
        return {'events': [{'timestamp': said, 'message': text, 'ingestionTime': read} for said, read, text in page],
                'nextForwardToken': f'f/{first + len(page)}' if page else token or f'f/{first}', 'nextBackwardToken': f'b/{first}'}

    def FilterLogEvents(self, request):
        self._check(request)
        if 'logStreamNames' in request and 'logStreamNamePrefix' in request:
            raise Trouble('InvalidParameterException', 'either names or a prefix')
        with self.lock:
            names = request.get('logStreamNames') or [
                name for name in self.streams if name.startswith(request.get('logStreamNamePrefix', ''))]
            missing = [name for name in names if name not in self.streams]
            if missing:
                raise Trouble('ResourceNotFoundException', 'the specified log stream does not exist')
            found = sorted((said, name, i, read, text) for name in names for i, (said, read, text) in
                           enumerate(self._visible(name, request.get('startTime'), request.get('endTime'))))
        words = [word.strip('"') for word in request.get('filterPattern', '').split()]
        found = [one for one in found if all(word in one[4] for word in words)]
        first, _, turn = request.get('nextToken', 'n/0')[2:].partition('.')
        first = int(first)
        page = found[first:first + min(request.get('limit', 10000), self.page_events)]
        if self.empty_pages and page and not turn:
            return {'events': [], 'nextToken': f'n/{first}.1'}
        reply = {'events': [{'logStreamName': name, 'timestamp': said, 'message': text, 'ingestionTime': read,
                             'eventId': f'{said}{i:06}'} for said, name, i, read, text in page]}
        if first + len(page) < len(found):
            reply['nextToken'] = f'n/{first + len(page)}'
        return reply

    @staticmethod
    def _cut(events):
        size = 0
        for i, event in enumerate(events):
            size += len(event[2].encode()) + 26
            if size > PAGE_BYTES and i:
                return events[:i]
        return events
