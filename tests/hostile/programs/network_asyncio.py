# EXPECT: an event loop runs, and connects to nothing
# OUTCOME: succeeded
# CONTROL: breaches
import asyncio
async def go():
    try: await asyncio.wait_for(asyncio.open_connection('127.0.0.1', __PORT__), 1); print('connected')
    except (OSError, asyncio.TimeoutError) as e: print(type(e).__name__)
asyncio.run(go())
